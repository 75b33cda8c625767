"""What a model in a folder of safetensors files is made of: sizes from their headers and
config.json.

Source: the safetensors format, github.com/huggingface/safetensors, README.md.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from edgespec.errors import NotFound
from edgespec.models.needs import LayerNeeds, ModelNeeds
from edgespec.models.shown import shown
from edgespec.models.vocabulary import MOST_TOKENS, read_json
from edgespec.models.wire import damaged

_LAYER: Final = re.compile(r"(?:^|\.)layers\.(\d+)\.")
_EXPERTS: Final = re.compile(r"\.(experts|switch_mlp)\.")
_OUTPUT: Final = re.compile(r"(^|\.)lm_head\.")
_MOST_HEADER_BYTES: Final = 100_000_000  # the format's own limit
_MOST_CONFIG_BYTES: Final = 1 << 22
_MOST: Final = 1 << 31
_MOST_LAYERS: Final = 1 << 12
_COUNT: Final = re.compile(r"(?:^|_)(?:num|n)_(?:[a-z]+_)*(?:layers?|experts?|loops|blocks)(?:_|$)")
_ROW_OF_LAYERS: Final = re.compile(r"layer|block|pattern")
_DEEPEST: Final = 8
_LONGEST_KEY: Final = 100
_INDEX: Final = "model.safetensors.index.json"
_BITS: Final = {
    "BOOL": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "U8": 8,
    "I8": 8,
    "F8_E4M3": 8,
    "F8_E5M2": 8,
    "F8_E8M0": 8,
    "U16": 16,
    "I16": 16,
    "F16": 16,
    "BF16": 16,
    "U32": 32,
    "I32": 32,
    "F32": 32,
    "U64": 64,
    "I64": 64,
    "F64": 64,
    "C64": 64,
}


@dataclass(frozen=True, slots=True)
class _Stored:
    """One tensor in a file."""

    name: str
    n_bytes: int
    elements: int
    packed: bool


def needs_of_folder(folder: Path) -> ModelNeeds:
    """Sizes of a model that is kept as safetensors, quantised by MLX or not.

    Raises: NotFound where a file is missing; ModelFileError where one holds nonsense.
    """
    config = _Config(_config(folder), folder / "config.json")
    _check_counts(config.path, config.values)
    stored = [tensor for file in weight_files(folder) for tensor in _tensors(file)]
    layers, experts = Counter[int](), Counter[int]()
    output = 0
    for tensor in stored:
        layer = _LAYER.search(tensor.name)
        if layer is not None:
            layers[int(layer[1])] += tensor.n_bytes
            experts[int(layer[1])] += tensor.n_bytes if _EXPERTS.search(tensor.name) else 0
        elif _OUTPUT.search(tensor.name):
            output += tensor.n_bytes
    whole = sum(tensor.n_bytes for tensor in stored)
    rest = whole - output - layers.total()
    keys = config.kv_heads * config.head
    return ModelNeeds(
        parameters=sum(_parameters(tensor, config) for tensor in stored),
        layers=tuple(
            LayerNeeds(layers[n], experts[n], *((keys, keys) if config.grows(n) else (0, 0)))
            for n in range(config.layers)
        ),
        input_bytes=rest,
        output_bytes=output,
        vocabulary=config.number("vocab_size", most=MOST_TOKENS),
        width=config.number("hidden_size"),
        queries=config.heads * config.head,
        heads=config.heads,
        inner=3 * config.number("intermediate_size"),
        masks=2 if config.number("sliding_window") else 1,
        block=(config.head, config.head),
        trained_context=config.number("max_position_embeddings"),
    )


@dataclass(frozen=True, slots=True)
class _Config:
    """config.json, with the language model's part of it where there are others beside it."""

    values: Mapping[str, Any]
    path: Path

    def number(self, key: str, other: int = 0, most: int = _MOST) -> int:
        value = self._text_part.get(key)
        if value is None:
            return other
        if type(value) is not int or not 0 <= value <= most:
            raise damaged(self.path, f"{key} is {shown(value, 40)}, not a number up to {most}")
        return value

    @property
    def layers(self) -> int:
        return self.number("num_hidden_layers", most=_MOST_LAYERS)

    @property
    def heads(self) -> int:
        return self.number("num_attention_heads")

    @property
    def kv_heads(self) -> int:
        return self.number("num_key_value_heads", self.heads)

    @property
    def head(self) -> int:
        return self.number("head_dim", self.number("hidden_size") // max(1, self.heads))

    @property
    def bits(self) -> int:
        """Bits of a quantised weight."""
        value = self.values.get("quantization")
        bits = value.get("bits") if isinstance(value, dict) else None
        return bits if type(bits) is int and 1 <= bits <= 32 else 32

    def grows(self, layer: int) -> bool:
        """Whether a layer keeps keys and values of every token."""
        kinds = self._text_part.get("layer_types")
        if not isinstance(kinds, list) or layer >= len(kinds):
            return True
        return str(kinds[layer]).endswith("attention") and kinds[layer] != "linear_attention"

    @property
    def _text_part(self) -> Mapping[str, Any]:
        part = self.values.get("text_config")
        return part if isinstance(part, dict) else self.values


def _check_counts(path: Path, values: Mapping[str, Any], depth: int = 0) -> None:
    """Refuse more layers or experts than any model has, under whatever name: each is made before
    a weight is looked for."""
    for key, value in values.items():
        if isinstance(value, dict) and depth < _DEEPEST:
            _check_counts(path, value, depth + 1)
        many = (
            type(value) in (int, float)
            and _COUNT.search(key[:_LONGEST_KEY])
            and not value <= _MOST_LAYERS
        )
        long = isinstance(value, list | str) and _ROW_OF_LAYERS.search(key[:_LONGEST_KEY])
        if many or (long and len(value) > _MOST_LAYERS):
            raise damaged(path, f"{shown(key, 60)} tells of more than {_MOST_LAYERS}")


def _parameters(tensor: _Stored, config: _Config) -> int:
    if tensor.name.endswith((".scales", ".biases")):
        return 0
    return tensor.elements * 32 // config.bits if tensor.packed else tensor.elements


def weight_files(folder: Path) -> list[Path]:
    """The files with a model's weights: all that mlx-lm reads, and those that an index names.

    Raises: NotFound naming the missing ones; ModelFileError for an index that leaves the folder.
    """
    files = sorted(folder.glob("model*.safetensors"))
    for file in files:
        if not os.path.isfile(file):  # a pipe would never end, and a loader opens them all
            raise damaged(file, "it is no file")
    if not files:
        raise NotFound(
            f"{shown(folder)} holds no safetensors file called model or model-…; check the folder's"
            " name."
        )
    if not os.path.isfile(folder / _INDEX):
        return files
    named = _indexed(folder / _INDEX)
    missing = [name for name in named if not os.path.isfile(folder / name)]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise NotFound(
            f"{shown(folder)} lacks {shown(missing[0], 80)}{more}, which its index names;"
            " download the missing files."
        )
    return sorted({*files, *(folder / name for name in named)})


def _indexed(path: Path) -> list[str]:
    """The names of the files in an index, each a plain name."""
    entries = read_json(path, _MOST_HEADER_BYTES).get("weight_map")
    if not isinstance(entries, dict) or not entries:
        raise damaged(path, "it maps no weights to files")
    names = sorted({str(name) for name in entries.values()})
    for name in names:
        plain = name == os.path.basename(name) and "\\" not in name and "\0" not in name
        if not plain or not name.endswith(".safetensors"):
            raise damaged(path, f"it names {shown(name, 80)}, which is no safetensors file there")
    return names


def _config(folder: Path) -> Mapping[str, Any]:
    path = folder / "config.json"
    try:
        return read_json(path, _MOST_CONFIG_BYTES)
    except FileNotFoundError as error:
        raise NotFound(f"{shown(path)} is missing; download the model again.") from error


def _tensors(path: Path) -> Iterator[_Stored]:
    """The entries of one file's header, each within the file."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        room = path.stat().st_size - 8 - length
        if not 2 <= length <= _MOST_HEADER_BYTES or room < 0:
            raise damaged(path, f"its header claims {length} bytes")
        text = file.read(length)
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise damaged(path, "its header is no JSON") from error
    if not isinstance(entries, dict):
        raise damaged(path, "its header is no JSON object")
    for name, entry in entries.items():
        if name != "__metadata__":
            yield _stored(path, name, entry, room)


def _stored(path: Path, name: str, entry: Any, room: int) -> _Stored:
    match entry:
        case {
            "dtype": str() as kind,
            "shape": [*shape],
            "data_offsets": [int() as start, int() as end],
        } if 0 <= start <= end <= room and all(type(n) is int and n >= 0 for n in shape):
            # a loader copies as many bytes as the shape promises
            if kind in _BITS and math.prod(shape) * _BITS[kind] == 8 * (end - start):
                return _Stored(name, end - start, math.prod(shape), kind == "U32")
    raise damaged(path, f"the entry of {shown(name, 80)} makes no sense")
