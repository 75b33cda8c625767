"""Loading models with mlx-lm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from edgespec.backends import BackendProbe, DeviceMemory, Placement
from edgespec.errors import BadInput, ModelFileError
from edgespec.models.folder_header import read_folder
from edgespec.models.header import GgufHeader
from edgespec.models.identity import fingerprint
from edgespec.models.model_header import ModelHeader
from edgespec.models.needs import ModelNeeds
from edgespec.models.shown import shown
from edgespec_mlx.convert import converted, needs_when_converted
from edgespec_mlx.device import Device, core, device, free_bytes, library_version

if TYPE_CHECKING:
    from edgespec_mlx.model import MlxModel

_USUAL_CONTEXT = 4096


def _memory(here: Device) -> tuple[DeviceMemory, ...]:
    if not here.metal:
        return ()
    return (DeviceMemory(free_bytes(here), unified=True, partial=False),)  # see load()


class MlxBackend:
    """mlx-lm's models on Apple chips; elsewhere on the CPU, slow but exact."""

    @classmethod
    def probe(cls) -> BackendProbe:
        core()
        here = device()
        return BackendProbe(
            "mlx",
            library_version(),
            (here.words,),
            here.metal,
            _memory(here),
            formats=("mlx", "gguf"),
            makeshift=not here.metal,
        )

    @classmethod
    def needs(cls, header: ModelHeader) -> ModelNeeds:
        """Sizes of what prepare() gives; see edgespec.loading.KeepsOtherwise."""
        return needs_when_converted(header) if isinstance(header, GgufHeader) else header.needs()

    @classmethod
    def prepare(cls, path: Path, report: Callable[[str], None]) -> Path:
        return path if path.is_dir() else converted(path, report)

    @classmethod
    def load(cls, path: Path, placement: Placement) -> MlxModel:
        core()  # says what is missing, where it is
        from edgespec_mlx.model import MlxModel, ModelFacts
        from edgespec_mlx.tokenizer import FolderTokenizer, NoTexts
        from edgespec_mlx.weights import check_first_pass, load_weights

        if placement.cpu_moe or placement.gpu_layers is not None:
            raise BadInput(
                "MLX keeps a model whole in memory that CPU and GPU share; leave --gpu-layers,"
                " --draft-gpu-layers and --cpu-moe out, or use --backend llamacpp."
            )
        if not path.is_dir():
            raise ModelFileError(
                f"{shown(path)} is no folder of safetensors files; MLX runs those only."
            )
        header = read_folder(path)
        vocab = header.sizes.vocabulary or header.vocabulary_size
        # a drafter with ids of its own only ever sees ids
        tokenizer = FolderTokenizer(header, vocab) if header.id_table is None else NoTexts(vocab)
        here = device()
        if here.wired_bytes:
            core().set_wired_limit(here.wired_bytes)
        weights = load_weights(header, guesses_only=placement.guesses_only)
        check_first_pass(weights.module, header, vocab)
        identity = (
            header.path.name,
            fingerprint(header.path),
            library_version(),
            here.words,
            weights.number_format,
        )
        facts = ModelFacts(
            name=shown(header.name, 80),
            identity="|".join(identity),
            device=here.words,
            context=header.context_length or _USUAL_CONTEXT,
            vocab=vocab,
            hidden_size=header.sizes.width,
        )
        return MlxModel(weights.module, tokenizer, facts)
