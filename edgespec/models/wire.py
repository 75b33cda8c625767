"""A bounds-checked walk over the beginning of a GGUF file."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Final, overload

import numpy as np
from numpy.typing import NDArray

from edgespec.errors import ModelFileError
from edgespec.models.shown import shown

MAX_HEADER_BYTES: Final = 256 << 20
MAX_STRING_BYTES: Final = 16 << 20
MAX_ELEMENTS: Final = 1 << 24
_FIRST_READ: Final = 1 << 20
_LENGTH: Final = struct.Struct("<Q")


def damaged(path: object, what: str, at: int | None = None) -> ModelFileError:
    """The error for a file that is not what it claims to be; `at` is a byte offset."""
    where = "" if at is None else f" at byte {at}"
    name = shown(path)
    return ModelFileError(f"{name}: {what}{where}; the file is damaged, download it again.")


class Strings(Sequence[bytes]):
    """Many byte strings in one piece of memory, cut out when asked for.

    ends[i]: where string i ends in `raw`, which keeps the 8-byte length before every string.
    """

    __slots__ = ("_ends", "_raw")

    def __init__(self, raw: bytes = b"", ends: array[int] | None = None) -> None:
        self._raw = raw
        self._ends = array("q") if ends is None else ends

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = range(len(self))[index]
        start = self._ends[i - 1] if i else 0
        return self._raw[start + 8 : self._ends[i]]

    def __iter__(self) -> Iterator[bytes]:
        start = 0
        for end in self._ends:
            yield self._raw[start + 8 : end]
            start = end


class Wire:
    """Reads little-endian values one after the other; `at` is the byte offset of the next.

    The file is read in pieces, so memory follows what is there and not what a length claims.
    """

    def __init__(self, file: BinaryIO, path: object, size: int) -> None:
        self.at = 0
        self._file = file
        self._path = path
        self._size = size
        self._buffer = bytearray()

    def fault(self, what: str, at: int | None = None) -> ModelFileError:
        """An error that names the file and the place, by default the present one."""
        return damaged(self._path, what, self.at if at is None else at)

    def left(self) -> int:
        """Bytes between here and the end of the file."""
        return self._size - self.at

    def take(self, n: int, what: str) -> int:
        """Step over `n` bytes that are known to be there; returns where they begin."""
        start = self.at
        if n > self.left():
            raise self.fault(f"{what} needs {n} bytes, but the file ends at byte {self._size}")
        if start + n > MAX_HEADER_BYTES:
            raise self.fault(f"{what} reaches beyond {MAX_HEADER_BYTES >> 20} MiB of header")
        if start + n > len(self._buffer):
            self._fill(start + n)
        self.at = start + n
        return start

    def integer(self, layout: str, what: str) -> int:
        """One integer; `layout` as in struct, such as "<Q"."""
        return int(self.number(layout, what))

    def number(self, layout: str, what: str) -> Any:
        """One number of any struct layout."""
        start = self.take(struct.calcsize(layout), what)
        return struct.unpack_from(layout, self._buffer, start)[0]

    def string(self, what: str, most: int = MAX_STRING_BYTES) -> bytes:
        """One string: a 64-bit length, then that many bytes."""
        start = self.at
        length = self.integer("<Q", f"the length of {what}")
        if length > most:
            raise self.fault(f"{what} claims {length} bytes where at most {most} make sense", start)
        at = self.take(length, what)
        return bytes(self._buffer[at : at + length])

    def strings(self, n: int, what: str) -> Strings:
        """`n` strings in a row, kept in one piece."""
        if 8 * n > self.left():
            raise self.fault(f"{what} claims {n} strings, more than the file can hold")
        first = at = self.at
        ends = array("q")
        buffer, length_at = self._buffer, _LENGTH.unpack_from
        for _ in range(n):
            if at + 8 > len(buffer):
                self.at = at
                self.take(8, f"a string length in {what}")
            (length,) = length_at(buffer, at)
            if at + 8 + length > len(buffer):
                self.at = at
                self.string(f"a string in {what}")
            at += 8 + length
            ends.append(at - first)
        self.at = at
        return Strings(bytes(buffer[first:at]), ends)

    def numbers(self, layout: str, n: int, what: str) -> NDArray[Any]:
        """`n` numbers of one struct layout, read-only."""
        dtype = np.dtype(layout)
        start = self.take(n * dtype.itemsize, what)
        values = np.frombuffer(bytes(self._buffer[start : self.at]), dtype)
        return values

    def _fill(self, upto: int) -> None:
        """Read on until byte `upto` is in memory, and some way beyond."""
        wanted = min(self._size, max(upto, 2 * len(self._buffer), _FIRST_READ))
        self._buffer += self._file.read(wanted - len(self._buffer))
        if len(self._buffer) < upto:
            raise self.fault("the file became shorter while it was read")
