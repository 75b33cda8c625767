"""A GGUF file as a folder that mlx-lm loads, made once and kept in the cache."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from edgespec.errors import EdgespecError, ModelFileError, NotFound
from edgespec.models.copies import place_of_copy
from edgespec.models.folder_header import read_folder
from edgespec.models.ggml import TENSOR_TYPES
from edgespec.models.gguf import read_header
from edgespec.models.header import GgufHeader, TensorInfo
from edgespec.models.id_table import IDS_KEY, VOCABULARY_KEY
from edgespec.models.needs import ModelNeeds, needs_of
from edgespec.models.shown import shown
from edgespec.models.sizes import size_text
from edgespec.models.split import parts_of, read_model
from edgespec_mlx.architectures import (
    FACTORS,
    Target,
    check_architecture,
    config_of,
    target_of,
)
from edgespec_mlx.gguf_blocks import BLOCK_TYPES, GROUP, BlockType, packed
from edgespec_mlx.gguf_vocabulary import tokenizer_files
from edgespec_mlx.safetensors_file import SafetensorsWriter

Report = Callable[[str], None]

_VERSION: Final = 1  # of what is written; older copies are not used
_PATIENCE_S: Final = 3600.0
_CHUNK_WEIGHTS: Final = 1 << 22  # that are in memory at once
_PLAIN: Final = {"F32": ("F32", "<f4"), "F16": ("F16", "<f2"), "BF16": ("BF16", "<u2")}
_SPARE_BYTES: Final = 64 << 20
_UNFINISHED: Final = "unfinished-"


def converted(path: Path, report: Report) -> Path:
    """The folder for a GGUF file, written now where it is not there yet.

    Raises: ModelFileError for what cannot be converted; EdgespecError where the disk refuses.
    """
    header = read_model(path)
    check_architecture(header)
    place = place_of_copy(header.path, _VERSION)
    folder = place / _folder_name(header)
    if _is_sound(folder):  # even in a cache where nothing can be written
        return folder
    try:
        place.mkdir(parents=True, exist_ok=True)
        # two first runs at once would do the work twice
        with FileLock(place / "lock", timeout=_PATIENCE_S):
            if not _is_sound(folder):
                _write(header, folder, report)
            return folder
    except Timeout as error:
        raise EdgespecError(
            f"Another edgespec has been converting {shown(path.name)} for an hour; end it, or wait."
        ) from error
    except OSError as error:
        raise EdgespecError(
            f"{shown(place)} cannot be written ({shown(error.strerror or error)}); make room or"
            " check its folder."
        ) from error


def needs_when_converted(header: GgufHeader) -> ModelNeeds:
    """Sizes of the folder that converted() makes of a file.

    Raises: ModelFileError for what cannot be converted.
    """
    check_architecture(header)
    kept = (tensor for tensor in header.tensors if target_of(header, tensor.name) is not None)
    needs = needs_of(header, {tensor.name: _bytes_for(header, tensor) for tensor in kept})
    return replace(needs, shared_bytes=0)  # one copy is both the input's and the output's


def _folder_name(header: GgufHeader) -> str:
    name = "".join(c if c.isalnum() or c in "-._" else "-" for c in header.path.stem[:80])
    return name.lstrip(".-") or "model"


def _is_sound(folder: Path) -> bool:
    """A folder is given its name when it is whole; somebody may have deleted a part since."""
    try:
        table = read_folder(folder).id_table
    except (NotFound, ModelFileError, OSError):
        return False
    return table is not None or (folder / "tokenizer.json").is_file()


def _write(header: GgufHeader, folder: Path, report: Report) -> None:
    """A reader sees no folder or a whole one."""
    targets = {tensor.name: target_of(header, tensor.name) for tensor in header.tensors}
    table = header.id_table
    files = tokenizer_files(header) if table is None else {}
    needed = sum(_bytes_for(header, tensor) for tensor in header.tensors)
    for leftover in folder.parent.glob(f"{_UNFINISHED}*"):  # of a run that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    free = shutil.disk_usage(folder.parent).free
    if free < needed + _SPARE_BYTES:
        raise EdgespecError(
            f"Converting {shown(header.path.name)} for MLX takes {size_text(needed)} in"
            f" {shown(folder.parent)}, where {size_text(free)} are free; make room, or move the"
            " cache with EDGESPEC_CACHE_DIR."
        )
    report(f"converting {header.path.name} for MLX; once, {size_text(needed)} in the cache")
    unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=folder.parent))
    try:
        config = config_of(header, _factors(header)) | _number_formats(header, targets)
        if table is not None:
            config |= {IDS_KEY: table.ids.tolist(), VOCABULARY_KEY: table.vocabulary}
        with (unfinished / "model.safetensors").open("wb") as file:
            _write_weights(header, targets, file, report)
        for name, content in {**files, "config.json": config}.items():
            text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
            (unfinished / name).write_text(text, encoding="utf-8", errors="replace")
        if folder.exists():
            shutil.rmtree(folder)
        unfinished.replace(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _write_weights(
    header: GgufHeader, targets: dict[str, Target | None], file: BinaryIO, report: Report
) -> None:
    writer = SafetensorsWriter(file, 3 * len(header.tensors))
    whole, done, told = header.parameter_count, 0, 0
    for part in parts_of(header.path):
        for tensor, raw in _stored(read_header(part)):
            target = targets[tensor.name]
            if target is not None:
                _convert(header, tensor, target, raw, writer)
            done += tensor.n_elements
            tenths = 10 * done // whole
            if told < tenths < 10:
                told = tenths
                report(f"converting {header.path.name}: {10 * tenths} %")
    writer.finish()


def _stored(header: GgufHeader) -> Iterator[tuple[TensorInfo, NDArray[np.uint8]]]:
    """Each tensor of one file with its bytes, uint8 [rows, bytes of a row], read when used."""
    for tensor in header.tensors:
        assert tensor.n_bytes is not None, "checked by _bytes_for()"
        start = header.data_offset + tensor.offset
        rows = math.prod(tensor.dims[1:])
        raw = np.memmap(header.path, np.uint8, "r", start, (rows, tensor.n_bytes // rows))
        yield tensor, raw


def _convert(
    header: GgufHeader,
    tensor: TensorInfo,
    target: Target,
    raw: NDArray[np.uint8],
    writer: SafetensorsWriter,
) -> None:
    rows = target.rows(tensor.dims[0] if len(tensor.dims) == 1 else len(raw))
    kind = TENSOR_TYPES[tensor.ggml_type].name
    if kind in _PLAIN:
        name, layout = _PLAIN[kind]
        values = raw.view(layout)
        if len(tensor.dims) == 1:
            values = values[0]
        writer.begin(target.whole_name, name, values.shape, values.nbytes)
        for start in range(0, len(values), _rows_at_once(tensor)):
            chosen = slice(start, start + _rows_at_once(tensor))
            writer.write(values[chosen if rows is None else rows[chosen]])
        return
    _convert_blocks(tensor, target, raw if rows is None else raw[rows], writer)


def _convert_blocks(
    tensor: TensorInfo, target: Target, raw: NDArray[np.uint8], writer: SafetensorsWriter
) -> None:
    """Weights as MLX packs them; scales and biases follow, so they are kept until then."""
    block = BLOCK_TYPES[TENSOR_TYPES[tensor.ggml_type].name]
    rows, columns = len(raw), tensor.dims[0]
    words = columns * block.bits // 32
    writer.begin(target.whole_name, "U32", (rows, words), 4 * rows * words)
    scales: list[NDArray[np.float16]] = []
    biases: list[NDArray[np.float16]] = []
    for start in range(0, rows, _rows_at_once(tensor)):
        some = raw[start : start + _rows_at_once(tensor)]
        groups = block.unpack(np.ascontiguousarray(some).reshape(-1, block.size))
        writer.write(packed(groups.q.reshape(len(some), columns), block.bits))
        for kept, values in ((scales, groups.scale), (biases, groups.bias)):
            kept.append(values.reshape(len(some), -1).astype(np.float16))
    writer.add(f"{target.name}.scales", np.concatenate(scales))
    writer.add(f"{target.name}.biases", np.concatenate(biases))


def _rows_at_once(tensor: TensorInfo) -> int:
    return max(1, _CHUNK_WEIGHTS // tensor.dims[0]) if len(tensor.dims) > 1 else _CHUNK_WEIGHTS


def _bytes_for(header: GgufHeader, tensor: TensorInfo) -> int:
    """What a tensor takes in the folder. Raises: ModelFileError for a type not converted."""
    known = TENSOR_TYPES.get(tensor.ggml_type)
    block = None if known is None else BLOCK_TYPES.get(known.name)
    if block is not None and len(tensor.dims) == 2:
        return tensor.n_elements * block.bits // 8 + tensor.n_elements // GROUP * 4
    if known is None or known.name not in _PLAIN:
        name = f"type {tensor.ggml_type}" if known is None else known.name
        raise ModelFileError(
            f"{shown(header.path.name)} holds weights as {name}, which are not converted for MLX;"
            " use a Q4_K_M, Q8_0 or BF16 file of this model, or --backend llamacpp."
        )
    return tensor.n_elements // known.block * known.size


def _number_formats(header: GgufHeader, targets: dict[str, Target | None]) -> dict[str, Any]:
    """The parts of config.json about packed weights: how most are, and those that differ."""
    kinds: dict[str, BlockType] = {}
    for tensor in header.tensors:
        target = targets[tensor.name]
        block = BLOCK_TYPES.get(TENSOR_TYPES[tensor.ggml_type].name)
        if target is not None and block is not None:
            kinds[target.name] = block
    if not kinds:
        return {}
    bits = [block.bits for block in kinds.values()]
    usual = max(set(bits), key=bits.count)
    packing: dict[str, Any] = {"group_size": GROUP, "bits": usual}
    for name, block in kinds.items():
        if block.bits != usual:
            packing[name] = {"group_size": GROUP, "bits": block.bits}
    return {"quantization": packing, "quantization_config": packing}


def _factors(header: GgufHeader) -> NDArray[np.float32] | None:
    """What the frequencies of positions are divided by; None where nothing is."""
    for part in parts_of(header.path):
        for tensor, raw in _stored(read_header(part)):
            if tensor.name == FACTORS and TENSOR_TYPES[tensor.ggml_type].name == "F32":
                return np.array(raw).view(np.float32).reshape(-1)
    return None
