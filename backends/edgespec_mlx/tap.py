"""Hidden states of chosen layers, recorded while an unchanged mlx_lm model runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx


class Tap:
    """What parts of a model were given and what they returned, in the latest pass.

    Only the classes of the parts change while the tap is on; weights and their names do not. The
    hidden state of layer n is what it returns: [1, rows, width].
    """

    def __init__(self, parts: Sequence[Any]) -> None:
        self._parts = tuple(parts)
        self._kinds: list[type] = []
        self.given: dict[int, list[mx.array]] = {}
        self.returned: dict[int, list[mx.array]] = {}

    def __enter__(self) -> Tap:
        self._kinds = [type(part) for part in self._parts]
        for number, part in enumerate(self._parts):
            part.__class__ = self._recording(number, type(part))
        return self

    def __exit__(self, *exception: object) -> None:
        for part, kind in zip(self._parts, self._kinds, strict=True):
            part.__class__ = kind

    def take(self) -> tuple[dict[int, list[mx.array]], dict[int, list[mx.array]]]:
        """What was given and returned since the last time, by the part's number."""
        taken = self.given, self.returned
        self.given, self.returned = {}, {}
        return taken

    def _recording(self, number: int, kind: Any) -> type:
        def call(part: Any, x: mx.array, *rest: Any, **named: Any) -> Any:
            self.given.setdefault(number, []).append(x)
            result = kind.__call__(part, x, *rest, **named)
            output = result[0] if isinstance(result, tuple) else result
            self.returned.setdefault(number, []).append(output)
            return result

        return type(f"Tapped{kind.__name__}", (kind,), {"__call__": call})


def tappable_layers(module: Any, hidden_size: int, tokens: mx.array) -> tuple[int, ...] | None:
    """Layers whose hidden states are what they are said to be, tried out; None = none.

    A layer counts when it runs once a pass, returns one vector of `hidden_size` for each token,
    what it returns is to the bit what the next one is given (a norm, behind the last layer), and
    the scores are the same with the tap on and off. tokens: int32 [n], n > 1.
    """
    layers, norms = list(module.layers), _norms_behind_layers(module)
    untapped = module(tokens[None])
    with Tap([*layers, *norms]) as tap:
        tapped = module(tokens[None])
    if not mx.array_equal(untapped, tapped).item():
        return None
    given, returned = tap.take()
    last, shape = len(layers) - 1, (1, tokens.size, hidden_size)

    def proven(layer: int) -> bool:
        outputs = returned.get(layer, [])
        if len(outputs) != 1 or outputs[0].shape != shape:
            return False
        behind = [layer + 1] if layer < last else range(last + 1, last + 1 + len(norms))
        inputs = [x for part in behind for x in given.get(part, [])]
        return any(mx.array_equal(outputs[0], x).item() for x in inputs)

    return tuple(layer for layer in range(len(layers)) if proven(layer)) or None


def _norms_behind_layers(module: Any) -> list[Any]:
    """Norms that belong to no layer; one of them is behind the last."""
    names = ((name.split("."), part) for name, part in module.named_modules())
    return [
        part
        for name, part in names
        if "layers" not in name and ("norm" in name[-1] or name[-1] == "ln_f")
    ]
