"""A path through a conversation's tree, as the model reads it and as the screen shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import zip_longest
from typing import TYPE_CHECKING

from edgespec.text.sanitize import clean
from edgespec.tui.blocks import BlockContent
from edgespec.tui.kept import options_of, runs_of, system_of, when_of
from edgespec.tui.transcript import Mark, Voice

if TYPE_CHECKING:
    from edgespec.history import Conversation, Saved
    from edgespec.options import AnswerOptions, Turn
    from edgespec.text.template import Message
    from edgespec.tui.talking import Answerer

ANSWERS, ASKS = "assistant", "user"
_ENDS = {
    "stop": "",
    "length": "ended at the token limit · Ctrl+G continues",
    "context": "the context is full · Ctrl+N starts a new chat",
    "cancelled": "stopped · Ctrl+G continues",
}
_CUT_OFF = "cut off · Ctrl+G continues"
_NOT_ANSWERED = "not answered · Ctrl+R tries again"


def messages_of(system: str, path: Sequence[Saved]) -> tuple[Message, ...]:
    """What the model reads."""
    from edgespec.text.template import Message

    opening = (Message("system", system),) if system else ()
    return (*opening, *(Message(saved.role, said_to_model(saved)) for saved in _read(path)))


def _read(path: Sequence[Saved]) -> Iterator[Saved]:
    """A message that got no answer is left out together with its answer, unless it stands at the
    end."""
    for saved, after in zip_longest(path, path[1:]):
        unanswered = after is not None and after.role == ANSWERS and not after.content
        if saved.content and not (saved.role == ASKS and unanswered):
            yield saved


def said_to_model(saved: Saved) -> str:
    """The text of a message with its attachments, each in a frame."""
    if not saved.attachments:
        return saved.content
    from edgespec.text.documents import Document, with_documents

    documents = [Document(one.name, one.text) for one in saved.attachments]
    return with_documents(saved.content, documents)


def turn_for(system: str, before: Sequence[Saved], options: AnswerOptions, by: Answerer) -> Turn:
    """What is to be answered where the path ends with a message of the user.

    by: who is to answer; its own replies are read by their ids.
    """
    from edgespec.options import Turn

    answers = (saved for saved in _read(before) if saved.role == ANSWERS)
    replies = tuple(saved.ids if saved.is_by(by.name, by.vocabulary) else () for saved in answers)
    messages = messages_of(system, before)
    return Turn(messages, options=options, replies=replies, when=datetime.now())


def turn_again(
    system: str, before: Sequence[Saved], answer: Saved, options: AnswerOptions, by: Answerer
) -> Turn:
    """What a kept answer answered, as it was told then; system: that of now, where that is not
    known."""
    turn = turn_for(system_of(answer.stats, system), before, options, by)
    return replace(turn, when=when_of(answer.stats))


def turn_of(
    system: str, before: Sequence[Saved], answer: Saved, now: AnswerOptions, by: Answerer
) -> Turn:
    """The turn that a kept answer was an answer to, as it was asked; the rest of one that was
    continued goes on behind what stood. system, now: those that are set, for what is unknown."""
    options, begun = options_of(answer.stats, now)
    overrides = dict(options.overrides)
    if answer.seed is not None:
        overrides["seed"] = answer.seed
    options = replace(options, overrides=overrides, branch=answer.branch)
    turn = turn_again(system, before, answer, options, by)
    return replace(turn, begun=tuple(answer.ids[:begun]))


def block_of(saved: Saved, conversation: Conversation) -> BlockContent:
    """A kept message as the screen shows it."""
    if saved.role == ANSWERS:
        runs, voice = runs_of(saved.content, saved.stats), Voice.ANSWER
    else:
        attached = [f"[{clean(one.name, one_line=True)}]" for one in saved.attachments]
        text = "\n".join([*attached, clean(saved.content)])
        runs, voice = ((text, Mark.PLAIN),), Voice.USER
    label = label_of(saved, conversation.siblings(saved.id))
    return BlockContent(saved.id, voice, runs, label, thinking=saved.stats.get("thinking") is True)


def label_of(saved: Saved, siblings: Sequence[int]) -> str:
    """What stands beside a message: its place among its branches, and how it ended."""
    words = []
    if len(siblings) > 1 and saved.id in siblings:
        words.append(f"branch {siblings.index(saved.id) + 1} of {len(siblings)}")
    if saved.role == ANSWERS:
        words.append(ending_of(saved))
    return " · ".join(word for word in words if word)


def ending_of(saved: Saved) -> str:
    """How an answer ended, where it did not end by itself."""
    if not saved.ids and not saved.content:
        return _NOT_ANSWERED
    why = saved.stats.get("finish_reason")
    if saved.state == "whole":
        return ""
    return _ENDS.get(why, _CUT_OFF) if isinstance(why, str) and why != "stop" else _CUT_OFF


def can_go_on(saved: Saved | None) -> str:
    """Why this answer cannot be continued; "" where it can."""
    if saved is None or saved.role != ANSWERS:
        return "there is no answer to continue"
    if saved.state == "whole":
        return "this answer is whole; Ctrl+R makes another"
    if not saved.ids:
        return "" if not saved.content else "the tokens of this answer were not kept"
    if saved.stats.get("finish_reason") == "context":
        return "the context is full; Ctrl+N starts a new chat"
    return ""


def neighbour(conversation: Conversation, step: int) -> int | None:
    """The message to switch to for the branch before (-1) or behind (1) the one that is open.

    Branches are walked like pages: at the last one of a fork, the fork above it goes on.
    """
    for saved in reversed(conversation.path):
        siblings = conversation.siblings(saved.id)
        at = siblings.index(saved.id) + step
        if 0 <= at < len(siblings):
            return siblings[at]
    return None


def numbered(conversation: Conversation, number: int) -> int | None:
    """Branch `number`, from 1, of the fork that is nearest to the end."""
    for saved in reversed(conversation.path):
        siblings = conversation.siblings(saved.id)
        if len(siblings) > 1:
            return siblings[number - 1] if 0 < number <= len(siblings) else None
    return None


def last(path: Sequence[Saved], role: str, back: int = 1) -> Saved | None:
    """The last message of a role, or the one `back` - 1 before it."""
    of_role = [saved for saved in path if saved.role == role]
    return of_role[-back] if 0 < back <= len(of_role) else None


def before(path: Sequence[Saved], id: int) -> tuple[Saved, ...]:
    """The messages above one."""
    at = next((number for number, saved in enumerate(path) if saved.id == id), len(path))
    return tuple(path[:at])


def used_before(path: Sequence[Saved], id: int) -> int:
    """Tokens of the context that stood before a message, as the last answer there told it."""
    answer = last(before(path, id), ANSWERS)
    told = answer.stats if answer is not None else {}
    figures = (told.get("prompt_tokens"), told.get("completion_tokens"))
    return sum(tokens for tokens in figures if type(tokens) is int and tokens > 0)
