"""Reads the header of a GGUF file and believes nothing in it unchecked.

A model file comes from strangers and goes to a C++ loader, so every count, length and offset is
held against the file's real size first. A file that was cut short is found here as well.
Source: the GGUF specification, github.com/ggml-org/ggml, docs/gguf.md.
"""

from __future__ import annotations

import math
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Final

from edgespec.errors import ModelFileError, NotFound
from edgespec.models.ggml import TENSOR_TYPES
from edgespec.models.header import GgufHeader, TensorInfo, Value
from edgespec.models.lookalike import HEAD_BYTES, describe
from edgespec.models.shown import shown
from edgespec.models.wire import MAX_ELEMENTS, Strings, Wire, damaged

_MAGIC: Final = b"GGUF"
_LAYOUTS: Final[Mapping[int, str]] = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_STRING: Final = 8
_ARRAY: Final = 9
_MAX_ENTRIES: Final = 1 << 16
_MAX_TENSORS: Final = 1 << 17
_MAX_KEY_BYTES: Final = (1 << 16) - 1
_MAX_NAME_BYTES: Final = 64
_MAX_DIMS: Final = 4
_SMALLEST_ENTRY: Final = 8 + 1 + 4 + 1
_SMALLEST_TENSOR: Final = 8 + 1 + 4 + 8 + 4 + 8
_SANE: Final = 1 << 31
_MAX_BLOCKS: Final = 512  # the loader aborts the whole process above this


def read_header(path: Path) -> GgufHeader:
    """The checked header of one GGUF file.

    Raises: NotFound; ModelFileError with the byte offset where something is wrong.
    """
    size = _size_of_file(path)
    try:
        with path.open("rb") as file:
            return read_beginning(file, path, size)
    except OSError as error:
        raise _unreadable(path, error) from error


def _size_of_file(path: Path) -> int:
    name = shown(path)
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise NotFound(f"{name} does not exist; check the path of the model file.") from error
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    if stat.S_ISDIR(status.st_mode):
        raise ModelFileError(f"{name} is a folder; name a GGUF file in it.")
    if not stat.S_ISREG(status.st_mode):
        raise ModelFileError(f"{name} is a device or a pipe; name a GGUF file on disk.")
    if not status.st_size:
        raise ModelFileError(f"{name} is empty; download it again.")
    return status.st_size


def _unreadable(path: Path, error: OSError | ValueError) -> ModelFileError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    name = shown(path)
    return ModelFileError(f"{name} cannot be read ({reason}); check its path and permissions.")


def read_beginning(file: BinaryIO, path: Path, size: int) -> GgufHeader:
    """The checked header of a GGUF file of `size` bytes, of which `file` has to hold no more.

    Raises: ModelFileError.
    """
    head = file.read(min(HEAD_BYTES, size))
    if not head.startswith(_MAGIC):
        what, next_step = describe(head)
        name = shown(path)
        raise ModelFileError(f"{name} is not a GGUF file but looks like {what}: {next_step}.")
    file.seek(0)
    wire = Wire(file, path, size)
    version, n_tensors, n_entries = _counts(wire)
    metadata = _metadata(wire, n_entries)
    alignment = _alignment(wire, metadata)
    tensors = tuple(_tensors(wire, n_tensors))
    header = GgufHeader(
        path=path,
        version=version,
        metadata=MappingProxyType(metadata),
        tensors=tensors,
        file_size=size,
        data_offset=wire.at + -wire.at % alignment,
    )
    _check_extent(header, alignment)
    _check_meaning(header)
    return header


def _counts(wire: Wire) -> tuple[int, int, int]:
    """Version, number of tensors, number of metadata entries."""
    wire.take(len(_MAGIC), "the magic number")
    version = wire.integer("<I", "the version")
    if version not in (2, 3):
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
        if swapped in (2, 3):
            raise wire.fault("the file is for big-endian machines", 4)
        raise wire.fault(f"GGUF version {version} is not one that edgespec reads (2 or 3)", 4)
    n_tensors = wire.integer("<Q", "the number of tensors")
    n_entries = wire.integer("<Q", "the number of metadata entries")
    if n_tensors > _MAX_TENSORS or n_tensors * _SMALLEST_TENSOR > wire.left():
        raise wire.fault(f"the file claims {n_tensors} tensors, more than it can hold", 8)
    if n_entries > _MAX_ENTRIES or n_entries * _SMALLEST_ENTRY > wire.left():
        raise wire.fault(f"the file claims {n_entries} metadata entries, more than it can hold", 16)
    return version, n_tensors, n_entries


def _metadata(wire: Wire, n: int) -> dict[str, Value]:
    metadata: dict[str, Value] = {}
    for i in range(n):
        at = wire.at
        key = _text(wire.string(f"the key of metadata entry {i}", _MAX_KEY_BYTES))
        name = shown(key, 80)
        if not key:
            raise wire.fault(f"metadata entry {i} has no key", at)
        if key in metadata:
            raise wire.fault(f"the key {name} comes twice", at)
        metadata[key] = _value(wire, wire.integer("<I", f"the type of {name}"), name)
    return metadata


def _value(wire: Wire, kind: int, name: str) -> Value:
    if kind == _ARRAY:
        return _array(wire, name)
    if kind == _STRING:
        return _text(wire.string(name))
    layout = _LAYOUTS.get(kind)
    if layout is None:
        raise wire.fault(f"{name} has the unknown value type {kind}", wire.at - 4)
    value: bool | int | float = wire.number(layout, name)
    return value


def _array(wire: Wire, name: str) -> Value:
    at = wire.at
    kind = wire.integer("<I", f"the element type of {name}")
    n = wire.integer("<Q", f"the length of {name}")
    if n > MAX_ELEMENTS:
        raise wire.fault(f"{name} claims {n} elements where at most {MAX_ELEMENTS} make sense", at)
    if kind == _STRING:
        return wire.strings(n, name)
    if kind == _ARRAY:
        raise wire.fault(f"{name} is an array of arrays, which no loader reads", at)
    layout = _LAYOUTS.get(kind)
    if layout is None:
        raise wire.fault(f"{name} has the unknown element type {kind}", at)
    return wire.numbers(layout, n, name)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="backslashreplace")


def _alignment(wire: Wire, metadata: Mapping[str, Value]) -> int:
    """What tensor data is aligned to, bytes."""
    value = metadata.get("general.alignment", 32)
    if type(value) is not int or value < 1 or value & (value - 1):
        raise wire.fault(f"general.alignment is {shown(value, 40)}, not a power of two")
    return value


def _tensors(wire: Wire, n: int) -> Iterable[TensorInfo]:
    seen: set[str] = set()
    for i in range(n):
        at = wire.at
        name = _text(wire.string(f"the name of tensor {i}", _MAX_NAME_BYTES))
        this = f"tensor {shown(name)}"
        if name in seen:
            raise wire.fault(f"{this} comes twice", at)
        seen.add(name)
        n_dims = wire.integer("<I", f"the dimension count of {this}")
        if not 1 <= n_dims <= _MAX_DIMS:
            raise wire.fault(f"{this} claims {n_dims} dimensions, not 1 to {_MAX_DIMS}", at)
        dims = tuple(wire.integer("<Q", f"the dimensions of {this}") for _ in range(n_dims))
        if not all(dims) or math.prod(dims) >= 1 << 63:
            raise wire.fault(f"{this} claims the impossible shape {dims}", at)
        ggml_type = wire.integer("<I", f"the type of {this}")
        known = TENSOR_TYPES.get(ggml_type)
        if known and dims[0] % known.block:
            rows = f"rows of {dims[0]}, not a multiple of {known.block}"
            raise wire.fault(f"{this} of type {known.name} has {rows}", at)
        yield TensorInfo(name, dims, ggml_type, wire.integer("<Q", f"the offset of {this}"))


def _check_extent(header: GgufHeader, alignment: int) -> None:
    """Every tensor lies inside the file; of an unknown type, at least its first byte does."""
    for tensor in header.tensors:
        this = f"tensor {shown(tensor.name)}"
        start = header.data_offset + tensor.offset
        if tensor.offset % alignment:
            what = f"{this} is not aligned to {alignment} bytes"
            raise damaged(header.path, what, start)
        needed = 1 if tensor.n_bytes is None else tensor.n_bytes
        if start + needed > header.file_size:
            missing = start + needed - header.file_size
            what = (
                f"the file is cut short: {this} needs {needed} bytes"
                f" and {missing} bytes are missing"
            )
            raise damaged(header.path, what, start)


def _check_meaning(header: GgufHeader) -> None:
    """The few figures that everything else is computed from are there and possible."""
    part = header.metadata.get("split.no", 0)
    if "general.architecture" not in header.metadata:
        if part == 0:
            raise damaged(header.path, "general.architecture is missing")
        return
    sane = {"context_length": _SANE, "embedding_length": _SANE, "block_count": _MAX_BLOCKS}
    for key, most in {**sane, "vocab_size": _SANE}.items():
        value = header.hyper(key)
        if value is None:
            continue
        if type(value) is not int or not 1 <= value <= most:
            what = f"{shown(f'{header.architecture}.{key}', 80)} is {shown(value, 40)}"
            raise damaged(header.path, f"{what}, not a number from 1 to {most}")
    _check_layers(header)
    _check_vocabulary(header)


def _check_layers(header: GgufHeader) -> None:
    """A file of one part that holds layers holds the last one too."""
    layers = header.hyper("block_count")
    if type(layers) is not int or header.metadata.get("split.count", 1) != 1:
        return
    named = [tensor.name for tensor in header.tensors if tensor.name.startswith("blk.")]
    if named and not any(name.startswith(f"blk.{layers - 1}.") for name in named):
        raise damaged(header.path, f"it claims {layers} layers and lacks the last of them")


def _check_vocabulary(header: GgufHeader) -> None:
    tokens: Any = header.metadata.get("tokenizer.ggml.tokens")
    if tokens is None:
        return
    if not isinstance(tokens, Strings) or not len(tokens):
        raise damaged(header.path, "tokenizer.ggml.tokens holds no tokens")
    for key in ("token_type", "scores"):
        values: Any = header.metadata.get(f"tokenizer.ggml.{key}")
        if values is None:
            continue
        n = 0 if isinstance(values, (str, bool, int, float, Strings)) else len(values)
        if n != len(tokens):
            what = f"tokenizer.ggml.{key} is not a list of {len(tokens)} numbers, one a token"
            raise damaged(header.path, what)
