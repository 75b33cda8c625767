"""Whatever is said, edited and switched, the path is that of a simple model, also on reopening."""

from __future__ import annotations

import tempfile
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgespec.history import Conversation, History, State
from edgespec.history.saved import Saved
from edgespec.history.tree import Tree

OFTEN, SELDOM = ["say", "answer", "again", "switch"], ["edit", "go on", "reopen"]
DEEDS = st.lists(
    st.tuples(st.sampled_from([*OFTEN, *OFTEN, *SELDOM]), st.integers(0, 1000)),
    min_size=10,
    max_size=30,
)


@dataclass
class Model:
    """Messages by age: the parent, the role and the text of each."""

    messages: list[tuple[int | None, str, str]] = field(default_factory=list)
    head: int | None = None

    def add(self, parent: int | None, role: str, text: str) -> None:
        self.messages.append((parent, role, text))
        self.head = len(self.messages) - 1

    def of(self, role: str) -> list[int]:
        return [n for n, message in enumerate(self.messages) if message[1] == role]

    def path(self) -> list[str]:
        found, at = [], self.head
        while at is not None:
            at, _, text = self.messages[at]
            found.insert(0, text)
        return found

    def below(self, number: int) -> list[int]:
        found = [number]
        for other, (parent, _, _) in enumerate(self.messages):
            if parent in found:
                found.append(other)
        return found


class Both:
    """A conversation and its model, to which the same is done."""

    def __init__(self, path: Path) -> None:
        self.path, self.model, self.ids = path, Model(), list[int]()
        self.history = History.open(path)
        self.conversation = self.history.new()

    def add(self, saved: Saved, parent: int | None, text: str) -> None:
        self.ids.append(saved.id)
        self.model.add(parent, saved.role, text)

    def do(self, deed: str, pick: int) -> None:
        model, talk = self.model, self.conversation
        text = f"{deed} {len(model.messages)}"
        asked, answers = model.of("user"), model.of("assistant")
        match deed:
            case "say":
                self.add(talk.say(text), model.head, text)
            case "edit" if asked:
                one = asked[pick % len(asked)]
                self.add(talk.edit(self.ids[one], text), model.messages[one][0], text)
            case "answer" if model.head in asked:
                begun, parent = talk.begin_answer("m", pick), model.head
                self.add(talk.finish(begun.id, text, (pick,), State.WHOLE, {}), parent, text)
            case "again" if answers:
                one = answers[pick % len(answers)]
                begun = talk.begin_answer("m", pick, 1, beside=self.ids[one])
                ended = talk.finish(begun.id, text, (), State.CUT, {})
                self.add(ended, model.messages[one][0], text)
            case "go on" if answers:
                one = answers[pick % len(answers)]
                parent, role, before = model.messages[one]
                talk.write(self.ids[one], "half", (1,))
                talk.finish(self.ids[one], before + " more", (1, 2), State.WHOLE, {})
                model.messages[one] = (parent, role, before + " more")
            case "switch" if model.messages:
                one = pick % len(model.messages)
                talk.switch(self.ids[one])
                model.head = model.below(one)[-1]
            case "reopen":
                self.reopen()

    def reopen(self) -> None:
        self.history.close()
        self.history = History.open(self.path)
        if self.ids:
            self.conversation = self.history.load(self.conversation.id)
        else:
            self.conversation = self.history.new()

    def check(self) -> None:
        talk: Conversation = self.conversation
        assert [message.content for message in talk.path] == self.model.path()
        parents = [message[0] for message in self.model.messages]
        for number, id in enumerate(self.ids):
            beside = [n for n, parent in enumerate(parents) if parent == parents[number]]
            assert talk.siblings(id) == tuple(self.ids[n] for n in beside)


@settings(deadline=None, max_examples=50)
@given(DEEDS)
def test_a_conversation_is_its_model_before_and_after_reopening(
    deeds: list[tuple[str, int]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        both = Both(Path(folder) / "history.sqlite3")
        with closing(both.history):
            for deed in deeds:
                both.do(*deed)
                both.check()
            both.reopen()
            both.check()
            assert both.history.notes == ()
            both.history.close()


def saved(id: int, parent: int | None) -> Saved:
    return Saved(id, parent, "user", str(id), (), State.WHOLE, (), {}, "", None, 0, 0.0)


@pytest.mark.parametrize("head", [None, 99, 5])
def test_messages_in_a_circle_or_without_their_parent_belong_nowhere(head: int | None) -> None:
    tree = Tree([saved(1, None), saved(2, 1), saved(3, 3), saved(4, 5), saved(5, 4)], head)
    assert [message.id for message in tree] == [1, 2]
    assert [message.id for message in tree.path] == [1, 2]
