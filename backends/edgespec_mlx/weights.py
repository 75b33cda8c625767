"""A folder's weights in one of mlx-lm's models; nothing in the folder is run as code."""

from __future__ import annotations

import glob
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from edgespec.errors import BackendMissing, ModelFileError, OutOfMemory
from edgespec.models.folder_header import FolderHeader
from edgespec.models.shown import shown
from edgespec_mlx.device import core, device, number_format

_MODULE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PROBE: Final = (1, 2, 3, 4)  # ids that every vocabulary has


@dataclass(frozen=True, slots=True)
class Weights:
    """A model ready to run. module: an nn.Module of mlx-lm. number_format: of its numbers."""

    module: Any
    number_format: str


def load_weights(header: FolderHeader, *, guesses_only: bool) -> Weights:
    """Build the model and read its weights into memory.

    Raises: ModelFileError where config and weights do not fit; OutOfMemory.
    """
    mx = core()
    module = _built(header)
    quantised = "quantization" in header.config or "quantization_config" in header.config
    stored = _stored(module)
    chip = (device().chip or "Metal") if device().metal else ""
    wanted = number_format(chip, stored, quantised=quantised, guesses_only=guesses_only)
    try:
        if wanted != stored and not _cast(module, wanted, header):
            module, wanted = _built(header), stored
        if header.config.get("converted_by") == "edgespec":
            module.set_dtype(getattr(mx, wanted))  # scales and norms as the other numbers
        mx.eval(module.parameters())
    except (MemoryError, RuntimeError) as error:
        raise _no_room(header, error) from error
    return Weights(module, wanted)


def _built(header: FolderHeader) -> Any:
    """The module with its weights, which are read when they are first needed."""
    name = header.architecture
    if _MODULE.fullmatch(name) is None:
        raise ModelFileError(
            f"{shown(header.path)} is of the model_type '{shown(name, 60)}', which is no name;"
            " download it again."
        )
    try:
        from mlx_lm.utils import load_model
    except (ImportError, OSError, ValueError) as error:
        raise BackendMissing(
            f"mlx-lm is installed but does not start ({shown(error, 160)}); install it anew with:"
            " pip install --force-reinstall mlx-lm"
        ) from error
    try:
        with plainly_named(header.path) as folder:
            module, _ = load_model(folder, lazy=True, trust_remote_code=False)
    except MemoryError as error:
        raise _no_room(header, error) from error
    except Exception as error:  # what a model's code trips over when its config is wrong
        raise _unfit(header, error) from error
    return module


@contextmanager
def plainly_named(folder: Path) -> Iterator[Path]:
    """The folder under a name that is text, and that mlx-lm does not take for a pattern."""
    name = str(folder)
    if glob.escape(name).encode("utf-8", "replace").decode() == name:
        yield folder
        return
    with tempfile.TemporaryDirectory() as place:
        link = Path(place) / "model"
        link.symlink_to(folder.absolute(), target_is_directory=True)
        yield link


def check_first_pass(module: Any, header: FolderHeader, vocab: int) -> None:
    """Read one token. Raises: ModelFileError where config.json makes the model trip over it."""
    mx = core()
    try:
        scores = module(mx.array([[0]]))
        mx.eval(scores)
    except MemoryError as error:
        raise _no_room(header, error) from error
    except Exception as error:  # as above
        raise _unfit(header, error) from error
    if scores.shape[-1] < vocab:
        told = f"it scores {scores.shape[-1]} tokens where its files tell of {vocab}"
        raise _unfit(header, ValueError(told))


def _unfit(header: FolderHeader, error: Exception) -> ModelFileError:
    told = shown(" ".join(str(error).split()), 200)
    name = shown(header.architecture, 60)
    if told.startswith(("Model type", "module 'mlx_lm.models")):
        return ModelFileError(
            f"{shown(header.path)} is of the model_type '{name}', which the installed mlx-lm does"
            " not run; update mlx-lm, or use a GGUF file with --backend llamacpp."
        )
    if isinstance(error, KeyError) or "__init__() missing" in told:
        told = f"config.json lacks or misnames {told.rpartition('missing ')[2]}"
    return ModelFileError(
        f"{shown(header.path)} does not make a '{name}' model: {told}; its config.json and its"
        " weights do not belong together, so download both again."
    )


def _no_room(header: FolderHeader, error: Exception) -> OutOfMemory:
    told = shown(" ".join(str(error).split()), 160) or "no more memory"
    return OutOfMemory(
        f"{shown(header.path.name, 80)} does not fit into memory: {told}; use a smaller model, or"
        " one with fewer bits."
    )


def _stored(module: Any) -> str:
    """The format of most floating-point numbers, by its name in MLX."""
    from mlx.utils import tree_flatten

    mx = core()
    sizes: Counter[str] = Counter()
    arrays: Any = tree_flatten(module.parameters())
    for _, array in arrays:
        if mx.issubdtype(array.dtype, mx.floating):
            sizes[str(array.dtype).rpartition(".")[2]] += array.size
    return sizes.most_common(1)[0][0] if sizes else "float32"


def _cast(module: Any, wanted: str, header: FolderHeader) -> bool:
    """Cast a model's numbers; whether it still gives finite scores with them."""
    mx = core()
    module.set_dtype(getattr(mx, wanted))
    if wanted == "float32":
        return True
    most = max(1, header.sizes.vocabulary)
    scores = module(mx.array([[token % most for token in _PROBE]]))
    return bool(mx.isfinite(scores).all())
