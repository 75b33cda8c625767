"""Chat templates: a conversation as the text, and the pieces of text, that the model expects."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import jinja2

from edgespec.errors import TemplateError
from edgespec.text.budget import DEFAULT_LIMITS, LimitReached, Limits
from edgespec.text.sandbox import Refused, Sandbox
from edgespec.text.sanitize import clean
from edgespec.text.thoughts import MARKS
from edgespec.text.tokenizer import Tokenizer

_CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
_CHATML_NOTE = (
    "The model file has no chat template, so ChatML stands in; answers may be odd where the model"
    " was trained on something else."
)
_CONTROL = re.compile(r"<[^<>\s]{1,64}>|\[/?[A-Z_]{2,32}\]")
_OPENERS = re.compile(r"([<\[])(?=\S)")
# marks at which a template may cut a reply
_MARKS = (*MARKS, "<answer>", "</answer>")
_MARK = re.compile(f"({'|'.join(map(re.escape, _MARKS))})")
_SANDBOX = Sandbox()
# what a template can provoke without reaching anything that is not its own
_FAULTS = (
    jinja2.TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    NotImplementedError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation. role: "system", "user" or "assistant"."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a rendered conversation.

    special: whether control-token text in it becomes control tokens. True for what the template
    wrote, False for what somebody said.
    """

    text: str
    special: bool


def looks_like_control(text: str) -> bool:
    """Whether `text` holds anything in the shape of a control token, such as <|im_end|>."""
    return _CONTROL.search(text) is not None


def control_check(tokenizer: Tokenizer) -> Callable[[str], bool]:
    """A check for control-token text that knows the model's own tokens."""

    def holds_control(text: str) -> bool:
        return tokenizer.encode(text, special=True) != tokenizer.encode(text, special=False)

    return holds_control


class ChatTemplate:
    """A model's chat template.

    source: None or blank where the model file has none; ChatML then stands in and `note` says so.
    bos, eos: texts of the model's begin and end tokens. holds_control: whether a text contains a
    control token of the model; asked only where a template changes what was said.
    """

    def __init__(
        self,
        source: str | None,
        bos: str,
        eos: str,
        *,
        holds_control: Callable[[str], bool] = looks_like_control,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        missing = source is None or not source.strip()
        self.note = _CHATML_NOTE if missing else ""
        self._source = _CHATML if source is None or missing else source
        self._special = {"bos_token": bos, "eos_token": eos}
        self._holds_control = holds_control
        self._limits = limits
        self._compiled: jinja2.Template | None = None

    def render(
        self,
        messages: Sequence[Message],
        *,
        add_generation_prompt: bool = True,
        extra: Mapping[str, object] = {},
    ) -> str:
        """The whole conversation as one text.

        extra: variables for the template, such as enable_thinking.
        Raises: TemplateError, with the template's own words where it turns a conversation down.
        """
        return self._render(messages, _Settings(add_generation_prompt, extra))

    def segments(
        self,
        messages: Sequence[Message],
        *,
        add_generation_prompt: bool = True,
        extra: Mapping[str, object] = {},
    ) -> list[Segment]:
        """The conversation, with what was said kept apart from what the template wrote.

        The texts together equal render(). Only where a template changes what was said and that
        holds control-token text, a space behind each "<" and "[" of it takes its power.
        Raises: TemplateError as render() does.
        """
        settings = _Settings(add_generation_prompt, extra)
        whole = self._render(messages, settings)
        mask = _Mask(messages)
        segments = self._masked(mask, settings)
        if segments is not None and _text(segments) == whole:
            return segments
        harmless = [replace(m, content=self._disarmed(m.content)) for m in messages]
        return [Segment(self._render(harmless, settings), special=True)]

    def continuation(
        self,
        messages_before: Sequence[Message],
        reply: Message,
        user: Message,
        *,
        extra: Mapping[str, object] = {},
    ) -> list[Segment] | None:
        """What follows a reply's content, up to and including the next generation prompt.

        It starts with the end-of-turn text, which the reply's own end token may already stand
        for. None where a longer conversation changes what came before the reply or the reply
        itself: the whole has then to be encoded anew.
        """
        asked, told = _Settings(True, extra), replace(reply, content=reply.content.strip())
        earlier, at = tuple(messages_before), len(messages_before)
        mask = _Mask((*earlier, told, user))
        reply_id = mask.id_for(told.content)
        hidden = (*mask.messages[:at], replace(told, content=reply_id), mask.messages[-1])
        try:
            text, prompt = self._render(hidden, asked), self._render(hidden[:at], asked)
            true_text = self._render((*earlier, told, user), asked)
            true_prompt = self._render(earlier, asked)
        except TemplateError:
            return None  # the full rendering will say why
        before, *after = text.split(reply_id)
        if len(after) != 1 or before != prompt:
            return None
        if _text(mask.split(text)) != true_text or _text(mask.split(prompt)) != true_prompt:
            return None
        return mask.split(after[0])

    def _masked(self, mask: _Mask, settings: _Settings) -> list[Segment] | None:
        try:
            return mask.split(self._render(mask.messages, settings))
        except TemplateError:  # it looks into what was said, and wants something else there
            return None

    def _disarmed(self, content: str) -> str:
        """`content` such that no part of it becomes a control token."""
        # the template may complete what is not yet a token of this model, so looks count too
        if not looks_like_control(content) and not self._holds_control(content):
            return content
        spaced = _OPENERS.sub(r"\1 ", content)
        if self._holds_control(spaced):
            raise TemplateError(
                "A message holds the text of a control token, and this model's chat template does"
                " not keep it apart from its own. Remove that text, or use another model."
            )
        return spaced

    def _render(self, messages: Sequence[Message], settings: _Settings) -> str:
        variables = {
            "messages": [{"role": m.role, "content": m.content} for m in messages],
            "tools": None,
            "documents": None,
            "add_generation_prompt": settings.add_generation_prompt,
            "strftime_now": settings.now.strftime,
            **self._special,
            **settings.extra,
        }
        try:
            if self._compiled is None:
                self._compiled = _SANDBOX.compiled(self._source, self._limits)
            return _SANDBOX.fill(self._compiled, variables, self._limits)
        except LimitReached as error:
            raise TemplateError(
                f"The model's chat template {error}. Shorten the conversation, use another model,"
                " or report this model."
            ) from error
        except Refused as error:
            raise TemplateError(
                f"The model's chat template turned the conversation down: {_words(error)}."
                " Try --system '' or another model."
            ) from error
        except _FAULTS as error:
            raise TemplateError(
                f"The model's chat template cannot be rendered ({_where(error)})."
                " Try --system '' or another model, or report this model."
            ) from error


@dataclass(frozen=True, slots=True)
class _Settings:
    """What one rendering is asked for; `now` is fixed so that two renderings agree."""

    add_generation_prompt: bool
    extra: Mapping[str, object]
    now: datetime = field(default_factory=datetime.now)


class _Mask:
    """A conversation in which unguessable ids stand for what was said.

    White space at either end stays, so that a template can strip it as it would; and so do the
    marks around a model's thoughts, since templates cut old thoughts out at them.
    """

    def __init__(self, messages: Sequence[Message]) -> None:
        self._said: dict[str, str] = {}
        self.messages = [replace(m, content=self._hidden(m)) for m in messages]

    def id_for(self, text: str) -> str:
        """A new id that stands for `text`."""
        name = f"x{secrets.token_hex(16)}x"
        self._said[name] = text
        return name

    def split(self, text: str) -> list[Segment]:
        """Rendered text, cut at the ids, with what was said put back in their place."""
        if not self._said:
            return [Segment(text, special=True)] if text else []
        parts = re.split(f"({'|'.join(self._said)})", text)
        segments = [Segment(parts[0], special=True)]
        for name, after in zip(parts[1::2], parts[2::2], strict=True):
            before = segments.pop().text
            said = self._said[name]
            core = said.strip()
            lead, _, trail = said.partition(core) if core else ("", "", "")
            # white space that the template kept is the speaker's, and encoded with the words
            lead = lead if before.endswith(lead) else ""
            trail = trail if after.startswith(trail) else ""
            segments += [
                Segment(before[: len(before) - len(lead)], special=True),
                Segment(lead + core + trail, special=False),
                Segment(after[len(trail) :], special=True),
            ]
        return [segment for segment in segments if segment.text]

    def _hidden(self, message: Message) -> str:
        if message.role != "assistant":
            return self._around(message.content)
        parts = _MARK.split(message.content)
        return "".join(part if at % 2 else self._around(part) for at, part in enumerate(parts))

    def _around(self, said: str) -> str:
        core = said.strip()
        if not core:
            return said
        lead, _, trail = said.partition(core)
        return lead + self.id_for(said) + trail


def _text(segments: Sequence[Segment]) -> str:
    return "".join(segment.text for segment in segments)


def _words(error: Exception) -> str:
    """The words of an error or of a template, in one line and of bearable length."""
    return clean(str(error) or type(error).__name__, one_line=True)[:300].strip().rstrip(".")


def _where(error: Exception) -> str:
    line = f", line {error.lineno}" if isinstance(error, jinja2.TemplateSyntaxError) else ""
    return f"{type(error).__name__}{line}: {_words(error)}"
