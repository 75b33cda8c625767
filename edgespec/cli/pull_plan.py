"""What a pull would fetch and what the pair would take, for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgespec.backends import find
from edgespec.cli.output import one_line
from edgespec.errors import BackendMissing, EdgespecError, OutOfMemory
from edgespec.loading import room, usual_context
from edgespec.models import fit as fitting
from edgespec.models import memory
from edgespec.models.available import Available, available_memory
from edgespec.models.hub import Hub
from edgespec.models.installed import InstalledModel, InstalledPair
from edgespec.models.pulling import Chosen, PullPlan
from edgespec.models.sizes import size_text

_WIDTH = 9


@dataclass(frozen=True, slots=True)
class MemoryTold:
    """What the pair would take here. verdict: what does not fit, or was changed so that it does."""

    lines: tuple[str, ...] = ()
    fits: bool | None = None
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """A plan in words. missing_bytes: what is left to fetch."""

    plan: PullPlan
    memory: MemoryTold
    missing_bytes: int
    cache: Path

    @property
    def lines(self) -> list[str]:
        """One fact a line."""
        return [f"{name:<{_WIDTH}} {one_line(text)}" for name, text in self._facts()]

    def _facts(self) -> Iterator[tuple[str, str]]:
        plan = self.plan
        yield "pair", plan.name
        yield "target", _model_line(plan.target)
        yield "draft", _model_line(plan.draft) if plan.draft else "none: the n-gram index guesses"
        if plan.base:
            yield "kind", "a base model: it goes on with a text and was not trained to answer"
        if plan.note:
            yield "words", plan.note
        yield "licence", plan.licence or "not stated"
        for line in self.memory.lines:
            yield "memory", line
        if self.memory.verdict:
            yield "memory", self.memory.verdict
        whole = sum(model.size for model in plan.models)
        here = whole - self.missing_bytes
        left = (
            f"{size_text(self.missing_bytes)} of {size_text(whole)}"
            if here > 0
            else (size_text(whole))
        )
        yield (
            "fetch",
            f"{left}, into {self.cache}" if self.missing_bytes else "nothing: all is here",
        )

    def as_dict(self, pair: InstalledPair | None) -> dict[str, Any]:
        """For JSON; pair: what was fetched, None after a dry run."""
        plan = self.plan
        return {
            "pair": plan.name,
            "target": _model_dict(plan.target, pair.target if pair else None),
            "draft": _model_dict(plan.draft, pair.draft if pair else None) if plan.draft else None,
            "base": plan.base,
            "licence": plan.licence,
            "vocabularies": plan.note or None,
            "bytes_to_fetch": self.missing_bytes,
            "memory": list(self.memory.lines),
            "fits": self.memory.fits,
            "memory_advice": self.memory.verdict or None,
            "fetched": pair is not None,
        }


def told(hub: Hub, plan: PullPlan, context: int | None, kv_type: str, *, fit: bool) -> Told:
    """The plan with its memory. fit: whether to look for what would make it fit."""
    return Told(plan, _memory(plan, context, kv_type, fit=fit), plan.missing_bytes(hub), hub.cache)


def _memory(plan: PullPlan, context: int | None, kv_type: str, *, fit: bool) -> MemoryTold:
    header, draft = plan.target.header, plan.draft.header if plan.draft else None
    if header is None:
        return MemoryTold((f"{size_text(plan.target.size)} of weights and more for the cache",))
    needed = memory.plan(header, draft, context or usual_context(header), kv_type)
    memory.check_kv_type(needed)
    free = _free()
    fits = needed.fits(free)
    if fit and not fits:
        return _fitted(needed, free)
    return MemoryTold(tuple(memory.describe(needed, free)), fits, _advice(needed, free))


def _fitted(needed: memory.MemoryPlan, free: Available) -> MemoryTold:
    try:
        fitted = fitting.fit(needed, free)
    except OutOfMemory as error:
        return MemoryTold(tuple(memory.describe(needed, free)), False, str(error))
    changes = f"with --fit: {', '.join(fitted.changes)}"
    return MemoryTold(tuple(memory.describe(fitted.plan, free)), True, changes)


def _advice(needed: memory.MemoryPlan, free: Available) -> str:
    try:
        fitting.check(needed, free)
    except OutOfMemory as error:
        return str(error)
    return ""


def _free() -> Available:
    """What the backend that would load this has free; main memory where none works."""
    try:
        return room(find("auto").probe().gpu_memory)
    except (ImportError, OSError, RuntimeError, BackendMissing, EdgespecError):
        return Available(available_memory())


def _model_line(model: Chosen) -> str:
    snapshot, first = model.snapshot, model.files[0].name
    parts = f" and {len(model.files) - 1} more files" if len(model.files) > 1 else ""
    facts = [f"{first}{parts}", model.quantisation, size_text(model.size)]
    told = ", ".join(fact for fact in facts if fact)
    return f"{snapshot.repo} at {snapshot.commit[:8]}: {told}"


def _model_dict(model: Chosen, installed: InstalledModel | None) -> dict[str, Any]:
    paths = installed.files if installed else [None] * len(model.files)
    return {
        "repo": model.snapshot.repo,
        "revision": model.snapshot.revision,
        "commit": model.snapshot.commit,
        "format": model.format,
        "quantisation": model.quantisation or None,
        "bytes": model.size,
        "files": [
            {"name": file.name, "bytes": file.size, "path": str(path) if path else None}
            for file, path in zip(model.files, paths, strict=True)
        ],
    }
