"""What the files of a model in a folder say: config.json, safetensors headers, tokenizer.json.

Only .safetensors, .json, .jinja and .txt files of a folder are ever opened, and no code that a
config.json names is run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from edgespec.errors import ModelFileError, NotFound
from edgespec.models.advice import sampler_advice
from edgespec.models.catalogue import Format
from edgespec.models.folder import needs_of_folder, weight_files
from edgespec.models.id_table import IDS_KEY, VOCABULARY_KEY, IdTable, id_table
from edgespec.models.identity import label_of
from edgespec.models.needs import ModelNeeds
from edgespec.models.shown import shown
from edgespec.models.vocabulary import Vocabulary, read_json, read_vocabulary
from edgespec.models.wire import damaged

_MOST_CONFIG_BYTES: Final = 1 << 22
_PICKLES: Final = (".bin", ".pt", ".pth", ".ckpt")
_SAMPLING: Final = {
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "repetition_penalty": "repeat_penalty",
}


def looks_like_model(folder: Path) -> bool:
    """Whether a folder means to be of the form that mlx-lm loads, even if something is missing."""
    if not os.path.lexists(folder / "config.json"):
        return any(folder.glob("model*.safetensors"))
    return any(folder.glob("*.safetensors")) or bool(_pickles(folder))


def looks_like_adapter(folder: Path) -> bool:
    return os.path.isfile(folder / "adapter_config.json") and not os.path.isfile(
        folder / "config.json"
    )


@dataclass(frozen=True)
class FolderHeader:
    """A folder with config.json and safetensors files, as mlx-lm loads them.

    config: the whole file. generation: generation_config.json, empty where there is none.
    """

    path: Path
    config: Mapping[str, Any]
    generation: Mapping[str, Any]
    sizes: ModelNeeds

    @property
    def format(self) -> Format:
        return "mlx"

    @property
    def architecture(self) -> str:
        return str(self.config["model_type"])

    @property
    def name(self) -> str:
        return label_of(self.path.absolute())

    @property
    def kind(self) -> str:
        # heads that guess for another model are published beside it under such names
        name = self.architecture
        heads = ("mtp", "eagle", "eagle3", "medusa", "dflash", "dspark", "speculator")
        return next((h for h in heads if h in name.lower().split("_")), "model")

    @property
    def file_type(self) -> str:
        """Such as "4 bits" or "bfloat16"; "unknown" where the config does not tell."""
        quantised = self.config.get("quantization")
        if isinstance(quantised, dict) and type(quantised.get("bits")) is int:
            return f"{quantised['bits']} bits"
        named = self.config.get("torch_dtype") or self.config.get("dtype")
        return named if isinstance(named, str) else "unknown"

    @property
    def file_size(self) -> int:
        return sum(file.stat().st_size for file in weight_files(self.path))

    @property
    def has_weights(self) -> bool:
        return self.sizes.parameters > 0

    @property
    def context_length(self) -> int:
        return self.sizes.trained_context

    @property
    def tokenizer(self) -> str:
        return self._vocabulary.kind

    @property
    def pretokenizer(self) -> str:
        return ""

    @property
    def tokens(self) -> Sequence[bytes]:
        return self._vocabulary.tokens

    @property
    def token_types(self) -> NDArray[np.int64]:
        return self._vocabulary.types

    @property
    def vocabulary_size(self) -> int:
        return len(self.tokens) or self.sizes.vocabulary

    @property
    def id_table(self) -> IdTable | None:
        """Of a drafter whose ids are its own. Raises: ModelFileError where it makes no sense."""
        ids, vocabulary = self.config.get(IDS_KEY), self.config.get(VOCABULARY_KEY)
        return id_table(self.path, ids, vocabulary, self.vocabulary_size)

    @property
    def sampler(self) -> Mapping[str, float | int]:
        """What generation_config.json recommends; nonsense is left out."""
        if self.generation.get("do_sample") is False:
            return {}
        return sampler_advice({name: self.generation.get(key) for key, name in _SAMPLING.items()})

    def special_token(self, name: str) -> int | None:
        for values in (self.generation, self.config):
            value = values.get(f"{name}_token_id")
            first = value[0] if isinstance(value, list) and value else value
            if type(first) is int and 0 <= first < self.vocabulary_size:
                return first
        return None

    def needs(self) -> ModelNeeds:
        return self.sizes

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return read_vocabulary(self.path / "tokenizer.json", self.sizes.vocabulary)


def read_folder(folder: Path) -> FolderHeader:
    """The checked header of a model in a folder.

    Raises: NotFound naming what is missing; ModelFileError for what cannot be used, with the line
    that helps.
    """
    if looks_like_adapter(folder):
        raise ModelFileError(
            f"{shown(folder)} holds an adapter, not a model; join it to its model with"
            " 'mlx_lm.fuse --model MODEL --adapter-path ADAPTER' and name the result."
        )
    if not any(folder.glob("*.safetensors")):
        _refuse_pickles(folder)
    config = _json(folder / "config.json")
    if config is None:
        raise NotFound(f"{shown(folder / 'config.json')} is missing; download the model again.")
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or not model_type:
        raise damaged(folder / "config.json", "it names no model_type")
    if config.get("model_file") is not None:
        raise ModelFileError(
            f"{shown(folder)} wants code of its own to be run ({shown(config['model_file'], 60)}),"
            " which edgespec never does; look for a version without model_file in config.json."
        )
    generation = _json(folder / "generation_config.json") or {}
    _json(folder / "hf_quant_config.json")  # which mlx-lm opens where it is there
    return FolderHeader(folder, config, generation, needs_of_folder(folder))


def _json(path: Path) -> dict[str, Any] | None:
    """A JSON object; None where there is no such file."""
    try:
        return read_json(path, _MOST_CONFIG_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        reason = shown(error.strerror or error)
        raise ModelFileError(f"{shown(path)} cannot be read ({reason}); check it.") from error


def _pickles(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.glob("*") if file.suffix in _PICKLES)


def _refuse_pickles(folder: Path) -> None:
    pickles = _pickles(folder)
    if not pickles:
        return
    name = shown(folder, 120)
    raise ModelFileError(
        f"{name} holds its weights as {shown(pickles[0], 60)}; such files can run code and are"
        " never opened. Where you trust it, convert it once with torch and transformers installed:"
        ' python -c "from transformers import AutoModelForCausalLM as M;'
        f" M.from_pretrained('{name}').save_pretrained('converted')\", copy its tokenizer files"
        " beside the result, and name that folder."
    )
