"""What a drafter knows before its first lesson: the target's own tables, made narrower."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edgespec.decoding.draft import Row, Tokens
from edgespec.models.gguf import read_header
from edgespec.models.header import GgufHeader, TensorInfo
from edgespec.models.split import parts_of
from edgespec.train.student import Student

_OUTPUT_SCALE = 0.04
_TABLES = ("token_embd.weight", "output.weight")


def target_tables(path: Path, ids: Tokens) -> tuple[Row, Row] | None:
    """Rows of a GGUF target's embedding and output tables, float32 [k, width] each.

    Where both are one, it is given twice. None where they are kept in a form that cannot be read
    here.
    """
    if not path.is_file():
        return None
    parts = [read_header(part) for part in parts_of(path)]
    tables = {t.name: (part, t) for part in parts for t in part.tensors if t.name in _TABLES}
    embedding = tables.get(_TABLES[0])
    if embedding is None or embedding[1].dims[-1] <= ids[-1]:
        return None
    output = tables.get(_TABLES[1], embedding)
    if output[1].dims != embedding[1].dims:
        return None
    try:
        return _rows(*embedding, ids), _rows(*output, ids)
    except (NotImplementedError, ValueError):  # a number format that gguf-py cannot read
        return None


def begin_with(student: Student, embedding: Row, output: Row, seed: int) -> None:
    """Fill the student's tables with the main directions of the target's.

    Each is turned by a random rotation of its own: with the same one, every token would begin by
    guessing itself. The rows of tokens that it does not know begin at zero.
    """
    maker = torch.Generator().manual_seed(seed)
    width = student.shape.width
    with torch.no_grad():
        for table, rows, scale in (
            (student.embedding, embedding, 1.0),
            (student.output, output, _OUTPUT_SCALE),
        ):
            narrow = _main_directions(torch.from_numpy(rows), width)
            rotation, _ = torch.linalg.qr(torch.randn(narrow.shape[1], width, generator=maker).T)
            turned = narrow @ rotation.T
            table.zero_()
            table[: len(rows)] = turned * (scale / turned.std().clamp_min(1e-9))


def _main_directions(rows: Tensor, most: int) -> Tensor:
    """The rows in their `most` directions of largest variance, [k, at most `most`]."""
    centred = rows - rows.mean(0)
    _, directions = torch.linalg.eigh(centred.T @ centred)
    return centred @ directions[:, -most:]


def _rows(header: GgufHeader, tensor: TensorInfo, ids: Tokens) -> NDArray[np.float32]:
    """header: of the file that holds the table."""
    whole, count = tensor.n_bytes, tensor.dims[-1]
    if whole is None:
        raise NotImplementedError
    raw = np.memmap(
        header.path,
        np.uint8,
        mode="r",
        offset=header.data_offset + tensor.offset,
        shape=(count, whole // count),
    )
    kind = gguf.GGMLQuantizationType(tensor.ggml_type)
    return np.ascontiguousarray(gguf.quants.dequantize(raw[ids], kind), np.float32)
