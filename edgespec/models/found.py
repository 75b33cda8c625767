"""Models that other programs have put on this disk; they are used where they lie.

Only names are read here; whether a file is sound, `inspect` tells from its header.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from edgespec.errors import EdgespecError
from edgespec.models.catalogue import Format
from edgespec.models.names import format_of, is_gguf, is_sidecar, quant_of
from edgespec.models.shown import shown
from edgespec.models.split import parts_of, read_model

_DEEPEST: Final = 6
_MOST_ENTRIES: Final = 50_000
_OLLAMA_SERVICE: Final = Path("/usr/share/ollama/.ollama/models")  # as its installer sets it up
_PART: Final = re.compile(r"-\d{5}-of-\d{5}$")
_MODEL_LAYER: Final = "application/vnd.ollama.image.model"
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_LARGEST_MANIFEST: Final = 1 << 20


class Place(StrEnum):
    """Whose folder a model lies in."""

    HUB = "Hugging Face cache"
    LM_STUDIO = "LM Studio"
    OLLAMA = "Ollama"
    LLAMA_CPP = "llama.cpp"


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model on the disk.

    name: as its program calls it, and as it can be typed. path: what a backend loads. size: bytes.
    manifest: the file that gives an Ollama model its name. fault: why it cannot be used; empty
    for what has not been inspected. about: architecture and number format, once inspected.
    """

    place: Place
    name: str
    path: Path
    files: tuple[Path, ...]
    size: int
    format: Format
    manifest: Path | None = None
    fault: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class InFolder:
    """A file somewhere below a folder. name: from there, with `/` between folders."""

    name: str
    path: Path
    size: int


def hub_cache() -> Path:
    """The cache that huggingface_hub, llama.cpp and mlx-lm share."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def places() -> dict[Place, tuple[Path, ...]]:
    """Where each program keeps its models, whether or not the folders exist."""
    home = Path.home()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return {
        Place.HUB: (hub_cache(),),
        Place.LM_STUDIO: (home / ".lmstudio" / "models", cache / "lm-studio" / "models"),
        Place.OLLAMA: (_from("OLLAMA_MODELS") or home / ".ollama" / "models", _OLLAMA_SERVICE),
        Place.LLAMA_CPP: (
            _from("LLAMA_CACHE") or cache / "llama.cpp",
            home / "Library" / "Caches" / "llama.cpp",
            (_from("LOCALAPPDATA") or home / "AppData" / "Local") / "llama.cpp",
        ),
    }


def _from(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(os.path.expanduser(value)) if value else None


def found_models() -> tuple[FoundModel, ...]:
    """Every model in every place, by place and name; what cannot be read is passed over."""
    found: dict[Path, FoundModel] = {}
    for place, folders in places().items():
        for folder in folders:
            for model in _SCANS[place](folder):
                if place is not Place.HUB and not _lies_in(folder, model):
                    continue
                # two names for one file are one model
                found.setdefault(_real(model.path), model)
    return tuple(
        sorted(found.values(), key=lambda model: (list(Place).index(model.place), model.name))
    )


def find_model(name: str) -> FoundModel | None:
    """The model that a program calls so, `:latest` left out or not, in whatever case.

    A name that is no text is also known as it is shown.
    """
    wanted = {name.casefold(), f"{name.casefold()}:latest"}
    for model in found_models():
        if not wanted.isdisjoint((model.name.casefold(), shown(model.name).casefold())):
            return model
    return None


def snapshot_files(repo: str) -> tuple[InFolder, ...]:
    """What the hub's cache holds of a repository: the main snapshot's files, else the newest's."""
    folder = hub_cache() / f"models--{repo.replace('/', '--')}"
    if not folder.is_dir():
        # the hub does not mind upper and lower case, a file system may
        wanted = folder.name.casefold()
        folder = next((f for f in _folders(hub_cache()) if f.name.casefold() == wanted), folder)
    snapshot = _snapshot(folder)
    return () if snapshot is None else tuple(_files(snapshot))


def files_called(tag: str, files: Sequence[InFolder]) -> tuple[InFolder, ...]:
    """Of a repository's files those of the model that is listed with this behind the colon."""
    for known, model in _tagged(_gguf(Place.HUB, list(files))):
        if known.casefold() == tag.casefold():
            return tuple(file for file in files if file.path in model.files)
    return ()


def inspect(model: FoundModel) -> FoundModel:
    """The same model with what its header tells, or why it cannot be used."""
    if model.format != "gguf" or model.fault:
        return model
    try:
        header = read_model(model.path)
        if header.kind != "model" or not header.tensors:
            return replace(model, fault="not a language model by itself")
        return replace(model, about=f"{header.architecture}, {header.file_type}")
    except EdgespecError as error:
        return replace(model, fault=str(error))


def _lies_in(folder: Path, model: FoundModel) -> bool:
    """Whether no link to another folder has led out of a program's own."""
    root = _real(folder)
    files = model.files if model.manifest is None else (*model.files, model.manifest)
    return all(_real(file.parent).is_relative_to(root) for file in files)


def _hub(folder: Path) -> Iterator[FoundModel]:
    for repo in _folders(folder):
        if not repo.name.startswith("models--"):
            continue
        snapshot = _snapshot(repo)
        if snapshot is not None:
            name = repo.name.removeprefix("models--").replace("--", "/", 1)
            yield from _in_repo(Place.HUB, name, snapshot)


def _snapshot(repo: Path) -> Path | None:
    """The snapshot that `main` names, else the newest one."""
    try:
        main = (repo / "refs" / "main").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        main = ""
    snapshots = _folders(repo / "snapshots")
    named = next((folder for folder in snapshots if folder.name == main), None)
    return named or max(snapshots, key=_changed, default=None)


def _lm_studio(folder: Path) -> Iterator[FoundModel]:
    for publisher in _folders(folder):
        for repo in _folders(publisher):
            yield from _in_repo(Place.LM_STUDIO, f"{publisher.name}/{repo.name}", repo)


def _in_repo(place: Place, name: str, folder: Path) -> Iterator[FoundModel]:
    """The models of one repository: each GGUF file that is one, or an MLX model whole."""
    files = list(_files(folder))
    if format_of(files) == "mlx":
        paths = tuple(file.path for file in files)
        yield FoundModel(place, name, folder, paths, sum(f.size for f in files), "mlx")
        return
    for tag, model in _tagged(_gguf(place, files)):
        yield replace(model, name=f"{name}:{tag}")


def _tagged(models: Iterable[FoundModel]) -> list[tuple[str, FoundModel]]:
    """The GGUF models of one repository, each with what stands behind the colon of its name: the
    first of its tags that no other model has too."""
    known = [(_tags(model), model) for model in models]
    holders = Counter(tag for tags, _ in known for tag in {tag.casefold() for tag in tags})
    return [
        (next((tag for tag in tags if holders[tag.casefold()] == 1), tags[-1]), model)
        for tags, model in known
    ]


def _tags(model: FoundModel) -> tuple[str, ...]:
    """Quantisation, if it is told, file's name, and that with its folders."""
    stem = _PART.sub("", model.path.stem)
    quant = quant_of(model.path.name)
    return (*([quant] if quant else []), stem, model.name.replace("/", "-"))


def _llama_cpp(folder: Path) -> Iterator[FoundModel]:
    yield from _gguf(Place.LLAMA_CPP, list(_files(folder)))
    # since 2026 llama.cpp lays its own folder out as the hub's cache
    for model in _hub(folder):
        yield replace(model, place=Place.LLAMA_CPP)


def _gguf(place: Place, files: list[InFolder]) -> Iterator[FoundModel]:
    known = {file.path: file for file in files}
    for file in files:
        if not is_gguf(file.name) or is_sidecar(file.name):
            continue
        parts = parts_of(file.path)
        if file.path != parts[0] and parts[0] in known:
            continue  # told with the first part
        here = tuple(part for part in parts if part in known)
        size = sum(known[part].size for part in here)
        yield FoundModel(place, file.name.removesuffix(".gguf"), file.path, here, size, "gguf")


def _ollama(folder: Path) -> Iterator[FoundModel]:
    manifests = folder / "manifests"
    for file in _files(manifests):
        layer = model_layer(file.path)
        if layer is None:
            continue
        blob = folder / "blobs" / layer.replace(":", "-")
        try:
            size = blob.stat().st_size
        except OSError:
            continue
        name = ollama_name(file.name)
        yield FoundModel(Place.OLLAMA, name, blob, (blob,), size, "gguf", manifest=file.path)


def ollama_root(model: FoundModel) -> Path:
    """The folder of Ollama's that holds a model's blob."""
    return model.path.parent.parent


def ollama_name(manifest: str) -> str:
    """`registry/library/name/tag` as people type it: `name:tag`."""
    model, _, tag = manifest.rpartition("/")
    host, _, rest = model.partition("/")
    if host in ("registry.ollama.ai", "hf.co"):
        return f"{rest.removeprefix('library/')}:{tag}"
    return f"{model}:{tag}"


def model_layer(manifest: Path) -> str | None:
    """The digest of the weights that an Ollama manifest names; None if it names none."""
    layers = [digest for kind, digest in layers_of(manifest) if kind == _MODEL_LAYER]
    return layers[0] if len(layers) == 1 else None


def layers_of(manifest: Path) -> list[tuple[str, str]]:
    """Kind and digest of every blob that an Ollama manifest names; empty where it is none."""
    try:
        with manifest.open("rb") as file:
            found = json.loads(file.read(_LARGEST_MANIFEST))
        layers = [*found["layers"], found.get("config") or {}]
        named = [(str(layer.get("mediaType")), layer.get("digest")) for layer in layers]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []
    return [
        (kind, digest)
        for kind, digest in named
        # a digest becomes a path, so nothing else may pass
        if isinstance(digest, str) and _DIGEST.fullmatch(digest)
    ]


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            found = [Path(e.path) for e in entries if _is_folder(e) and not e.name.startswith(".")]
    except OSError:
        return []
    return sorted(found)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _files(folder: Path) -> Iterator[InFolder]:
    """Every readable file below a folder, not too deep and not too many; no folder twice."""
    seen: set[tuple[int, int]] = set()
    top = _real(folder)
    waiting = [(folder, "", 0)]
    left = _MOST_ENTRIES
    while waiting:
        at, prefix, depth = waiting.pop()
        if not _real(at).is_relative_to(top):  # a link may lead to all of the disk
            continue
        try:
            status = at.stat()
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            with os.scandir(at) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in listed:
            left -= 1
            if left < 0:
                return
            try:
                if entry.is_dir():
                    if depth < _DEEPEST and not entry.name.startswith("models--"):
                        waiting.append((Path(entry.path), f"{prefix}{entry.name}/", depth + 1))
                elif entry.is_file():
                    yield InFolder(f"{prefix}{entry.name}", Path(entry.path), entry.stat().st_size)
            except OSError:  # a link to nothing, or without permission
                continue


def _changed(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


_SCANS: Final[dict[Place, Callable[[Path], Iterator[FoundModel]]]] = {
    Place.HUB: _hub,
    Place.LM_STUDIO: _lm_studio,
    Place.OLLAMA: _ollama,
    Place.LLAMA_CPP: _llama_cpp,
}
