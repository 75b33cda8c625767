"""Writes a safetensors file tensor by tensor, so that a model need not fit into memory twice.

Source: the safetensors format, github.com/huggingface/safetensors, README.md.
"""

from __future__ import annotations

import json
from typing import Any, BinaryIO, Final

from numpy.typing import NDArray

_NAMES: Final = {"float32": "F32", "float16": "F16", "uint32": "U32"}
_ENTRY_BYTES: Final = 256  # of one tensor in the header; names are short


class SafetensorsWriter:
    """Tensors one after the other behind a header that is filled in at the end.

    most: tensors that will be written.
    """

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file, self._room = file, _ENTRY_BYTES * (most + 1)
        self._entries: dict[str, Any] = {"__metadata__": {"format": "mlx"}}
        self._written = 0
        file.write(self._room.to_bytes(8, "little") + b" " * self._room)

    def begin(self, name: str, kind: str, shape: tuple[int, ...], n_bytes: int) -> None:
        """The next `n_bytes` are this tensor. kind: by its name in the format."""
        end = self._written + n_bytes
        self._entries[name] = {"dtype": kind, "shape": shape, "data_offsets": [self._written, end]}
        self._written = end

    def write(self, values: NDArray[Any]) -> None:
        """Bytes of the tensor that was begun."""
        self._file.write(values.tobytes())

    def add(self, name: str, values: NDArray[Any], kind: str = "") -> None:
        """A whole tensor. kind: where it is not what numpy calls it."""
        self.begin(name, kind or _NAMES[values.dtype.name], values.shape, values.nbytes)
        self.write(values)

    def finish(self) -> None:
        """Fill the header in. The format allows spaces behind it."""
        text = json.dumps(self._entries).encode()
        assert len(text) <= self._room, "more tensors than were announced"
        self._file.seek(8)
        self._file.write(text)
