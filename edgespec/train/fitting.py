"""Teaching a drafter the target's distribution, until the time is up."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from edgespec.errors import BadInput
from edgespec.models.shown import shown
from edgespec.models.store import write_atomically
from edgespec.train.lessons import TEMPERATURE, Lesson
from edgespec.train.student import Shape, Student

_CHUNK = 512  # places whose scores over the whole vocabulary exist at once
_WARM_UP, _FLAT = 40, 0.3  # steps; share of the course before the rate sinks
_LEAST = 0.01  # of the rate, at the very end
_DECAY, _MOMENTUM = 0.05, 0.95
_UNREADABLE = (
    OSError,
    RuntimeError,
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    UnpicklingError,
)


@dataclass(frozen=True, slots=True)
class Step:
    """What one step told. loss: cross-entropy to the target's distribution, nats a place."""

    loss: float
    places: int


class Training:
    """A student and its optimisers.

    Matrices move by Muon, tables and norms by AdamW. Source of Muon: Jordan 2024; of its scale:
    arXiv:2502.16982.
    """

    def __init__(self, student: Student, rate: float, device: str = "cpu") -> None:
        self.student, self.rate = student.to(device), rate
        self._device, self.steps = device, 0
        matrices = [p for p in student.blocks.parameters() if p.ndim == 2]
        norms = [student.norm, *(p for p in student.blocks.parameters() if p.ndim == 1)]
        self._others = [student.embedding, student.output, *norms]
        self._optimisers: list[torch.optim.Optimizer] = [
            torch.optim.Muon(
                matrices,
                lr=rate,
                weight_decay=_DECAY,
                momentum=_MOMENTUM,
                adjust_lr_fn="match_rms_adamw",
            ),
            torch.optim.AdamW(self._others, lr=rate, betas=(0.9, 0.95), weight_decay=0.0),
        ]

    def step(self, lesson: Lesson, done: float) -> Step:
        """Learn from one lesson. done: share of the course that is behind, 0 to 1."""
        loss, places = self._backward(lesson)
        torch.nn.utils.clip_grad_norm_(self._others, 1.0)
        rate = self.rate * min(1.0, (self.steps + 1) / _WARM_UP)
        rate *= min(1.0, max(_LEAST, (1.0 - done) / (1.0 - _FLAT)))
        for optimiser in self._optimisers:
            for group in optimiser.param_groups:
                group["lr"] = rate
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        self.steps += 1
        return Step(loss, places)

    def _backward(self, lesson: Lesson) -> tuple[float, int]:
        """Gradients of one lesson; scores over the vocabulary exist for a chunk at a time."""
        with torch.autocast(self._device, dtype=torch.bfloat16):
            states = self.student(lesson.ids.to(self._device))[lesson.at.to(self._device)]
            apart = states.detach().requires_grad_()
            places, total = len(apart), 0.0
            for start in range(0, places, _CHUNK):
                here = slice(start, start + _CHUNK)
                loss = self._loss(apart[here], lesson.wanted[here], lesson.share[here]) / places
                loss.backward()
                total += float(loss.detach())
        states.backward(apart.grad)
        return total, places

    def _loss(self, states: Tensor, wanted: Tensor, share: Tensor) -> Tensor:
        scores = self.student.scores(states).float() / TEMPERATURE
        log_p = F.log_softmax(scores, dim=-1).gather(1, wanted.to(self._device))
        return -(share.to(self._device) * log_p).sum()

    def save(self, path: Path, about: dict[str, Any]) -> None:
        """Keep everything that going on needs. Raises: EdgespecError where the disk refuses."""
        buffer = BytesIO()
        torch.save(
            {
                "shape": asdict(self.student.shape),
                "student": self.student.state_dict(),
                "optimisers": [optimiser.state_dict() for optimiser in self._optimisers],
                "steps": self.steps,
                "about": about,
            },
            buffer,
        )
        write_atomically(path, buffer.getvalue())

    @classmethod
    def load(
        cls, path: Path, rate: float, device: str = "cpu", shape: Shape | None = None
    ) -> tuple[Training, dict[str, Any]]:
        """A training to go on with, and what was said about it.

        shape: what the drafter must have. Raises: BadInput.
        """
        try:
            kept = torch.load(path, map_location=device, weights_only=True)
            found = Shape(**kept["shape"])
            if shape is not None and found != shape:
                raise ValueError("it is of a drafter of another shape")
            training = cls(Student(found), rate, device)
            training.student.load_state_dict(kept["student"])
            for optimiser, state in zip(training._optimisers, kept["optimisers"], strict=True):
                optimiser.load_state_dict(state)
            training.steps = int(kept["steps"])
            return training, kept["about"]
        except _UNREADABLE as error:
            reason = shown(str(error).splitlines()[0] if str(error) else error, 120)
            raise BadInput(
                f"{shown(path)} cannot be gone on with ({reason}); --fresh begins anew."
            ) from error
