"""Markdown set as rows: what an answer looks like once it is whole.

The text comes from a model, so nothing in it may hide or take over anything: HTML, link targets,
reference definitions and images are shown as they are written, links are no hyperlinks, and what
entities spell (`&#x202e;`) passes the sanitiser like everything else. What does not fit, or would
lose a letter, is not set at all. Size and time are bounded.
"""

from __future__ import annotations

import io
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token as MarkdownToken
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement, TableElement
from rich.segment import Segment
from rich.style import Style
from rich.syntax import Syntax, SyntaxTheme, TokenType
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from edgespec.text.sanitize import clean
from edgespec.tui.rows import Row, Voice

_MOST_CHARACTERS = 64_000
_MOST_CELLS = 2_000  # of all tables
_MOST_CODE = 20_000  # characters of a code block that is still coloured
_LONGEST_LINE = 1_000  # of code that is still coloured: some lexers search a line again and again
_LONGEST_S = 0.5

# what is coloured: lexers of languages that models often write, not every one that Pygments has
_LANGUAGES = frozenset({
    "bash", "c", "c++", "cpp", "cs", "csharp", "css", "diff", "docker", "dockerfile", "go",
    "haskell", "html", "ini", "java", "javascript", "js", "json", "jsx", "julia", "kotlin", "lua",
    "make", "makefile", "markdown", "md", "objc", "perl", "php", "powershell", "ps1", "py",
    "python", "python3", "r", "rb", "ruby", "rs", "rust", "scala", "sh", "shell", "sql", "swift",
    "toml", "ts", "tsx", "typescript", "vim", "xml", "yaml", "yml", "zig", "zsh",
})  # fmt: skip


_CODE = frozenset({"fence", "code_block"})


@dataclass(frozen=True, slots=True)
class Looks:
    """How the parts of Markdown look, on top of what an answer looks like."""

    heading: Style = field(default_factory=lambda: Style(bold=True))
    code: Style = field(default_factory=Style)
    fence: Style = field(default_factory=Style)
    link: Style = field(default_factory=lambda: Style(underline=True))
    quote: Style = field(default_factory=lambda: Style(italic=True))
    rule: Style = field(default_factory=Style)
    bullet: Style = field(default_factory=Style)
    keyword: Style = field(default_factory=lambda: Style(bold=True))
    name: Style = field(default_factory=Style)
    string: Style = field(default_factory=Style)
    number: Style = field(default_factory=Style)
    comment: Style = field(default_factory=lambda: Style(italic=True))


@dataclass(frozen=True, slots=True)
class Bounds:
    """What setting a text may cost. longest_s: seconds, looked at between parts of the text."""

    characters: int = _MOST_CHARACTERS
    cells: int = _MOST_CELLS
    longest_s: float = _LONGEST_S
    clock: Callable[[], float] = time.monotonic


class _TooMuch(Exception):
    """A bound was passed."""


class _Deadline:
    """Raises once a text has taken too long."""

    def __init__(self, clock: Callable[[], float], longest_s: float) -> None:
        self._clock = clock
        self._longest_s = longest_s
        self._until_s = 0.0

    def begin(self) -> None:
        self._until_s = self._clock() + self._longest_s

    def check(self) -> None:
        if self._clock() > self._until_s:
            raise _TooMuch


class MarkdownSetter:
    """Sets Markdown in the looks of one theme."""

    def __init__(self, looks: Looks, bounds: Bounds | None = None) -> None:
        self.looks = looks
        self._bounds = bounds or Bounds()
        self._deadline = _Deadline(self._bounds.clock, self._bounds.longest_s)
        self._parser = _parser(self._deadline.check)
        self._markdown = _Markdown(_CodeTheme(looks))
        self._theme = Theme(_styles(looks))

    def rows(self, text: str, width: int) -> list[Row] | None:
        """None where a bound was passed, or where not all would be seen of the text."""
        if len(text) > self._bounds.characters:
            return None
        try:
            rows = self._set(text, width)
        except (_TooMuch, RuntimeError, AssertionError, ValueError, LookupError):
            # what the libraries trip over can still be shown as it was written
            return None
        blank = not rows and text.strip()
        return None if blank or _loses(text, self._markdown.parsed, rows) else rows

    def _set(self, text: str, width: int) -> list[Row]:
        self._deadline.begin()
        self._markdown.take(self._parser.parse(text))
        if self._markdown.table_cells > self._bounds.cells:
            raise _TooMuch
        console = Console(
            file=io.StringIO(),
            width=width,
            color_system="truecolor",
            legacy_windows=False,
            theme=self._theme,
            _environ={},
        )
        rendered = console.render(self._markdown, console.options)
        segments = _checked(rendered, self._deadline.check)
        lines = Segment.split_and_crop_lines(segments, width, include_new_lines=False, pad=False)
        return _without_margins([_row(line) for line in lines])


def code_blocks(text: str) -> list[str]:
    """The code in the fences of a text, in their order; of a text too long for Markdown, none."""
    if len(text) > _MOST_CHARACTERS:
        return []
    tokens = _parser(lambda: None).parse(text)
    return [token.content for token in tokens if token.type in _CODE]


def _loses(text: str, parsed: Iterable[MarkdownToken], rows: Iterable[Row]) -> bool:
    """Whether a letter of the text was not parsed, as of cells that a table has no column for, or
    a character that was parsed is in no row, as where there is no room for it."""
    understood = [f"{token.content} {token.info}" for token in parsed]
    if _letters(text) - _letters(" ".join(understood)):
        return True
    shown = _seen("".join(row.text for row in rows))
    return bool(_seen("\n".join(_parts(parsed))) - shown)


def _parts(parsed: Iterable[MarkdownToken]) -> Iterator[str]:
    """All that is to be seen of what was parsed."""
    for token in parsed:
        if token.type in _CODE:
            yield token.content
        for child in token.children or ():
            yield str(child.attrs["href"]) if child.type == "link_open" else child.content


def _letters(text: str) -> Counter[str]:
    return Counter(char for char in clean(text) if char.isalnum())


def _seen(text: str) -> Counter[str]:
    return Counter(char for char in clean(text) if not char.isspace())


def _parser(check: Callable[[], None]) -> MarkdownIt:
    """A parser that hides nothing, and calls `check` at every step."""

    def at_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        check()
        return False

    def at_inline(state: StateInline, silent: bool) -> bool:
        check()
        return False

    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    parser.disable("reference")
    parser.block.ruler.before("table", "check", at_block)
    parser.inline.ruler.before("text", "check", at_inline)
    return parser


def _checked(segments: Iterable[Segment], check: Callable[[], None]) -> Iterator[Segment]:
    for segment in segments:
        check()
        yield segment


def _row(line: list[Segment]) -> Row:
    row = Row(Voice.ANSWER)
    for text, style, control in line:
        if not control and (safe := clean(text, one_line=True)):
            row.add(safe, style or Style.null())
    while row.runs and not row.runs[-1][0].strip() and not _is_seen(row.runs[-1][1]):
        padding, _ = row.runs.pop()
        row.length -= len(padding)
        row.cells -= len(padding)
    return row


def _is_seen(look: object) -> bool:
    """Whether a space in this look is anything but empty."""
    return isinstance(look, Style) and (look.bgcolor is not None or bool(look.underline))


def _without_margins(rows: list[Row]) -> list[Row]:
    """The rows without empty ones at the beginning and the end."""
    filled = [number for number, row in enumerate(rows) if row.text.strip()]
    rows = rows[filled[0] : filled[-1] + 1] if filled else []
    if rows:
        rows[0].opens = True
    return rows


class _CodeTheme(SyntaxTheme):
    """Colours of code by what its parts are, in the names of Pygments."""

    def __init__(self, looks: Looks) -> None:
        self._background = looks.fence
        self._styles: dict[TokenType, Style] = {
            ("Keyword",): looks.keyword,
            ("Operator", "Word"): looks.keyword,
            ("Name", "Tag"): looks.keyword,
            ("Name", "Function"): looks.name,
            ("Name", "Class"): looks.name,
            ("Name", "Decorator"): looks.name,
            ("Name", "Attribute"): looks.name,
            ("Literal", "String"): looks.string,
            ("Literal", "Number"): looks.number,
            ("Comment",): looks.comment,
            ("Generic", "Inserted"): looks.name,
            ("Generic", "Deleted"): looks.number,
            ("Generic", "Heading"): looks.keyword,
        }

    def get_style_for_token(self, token_type: TokenType) -> Style:
        for length in range(len(token_type), 0, -1):
            style = self._styles.get(token_type[:length])
            if style is not None:
                return style
        return Style.null()

    def get_background_style(self) -> Style:
        return self._background


class _Code(CodeBlock):
    """A code block as it was written, coloured where the language is known."""

    def __init__(self, language: str, remark: str, colours: SyntaxTheme) -> None:
        super().__init__(language, "")
        self._remark, self._colours = remark, colours

    @classmethod
    def create(cls, markdown: Markdown, token: MarkdownToken) -> _Code:
        assert isinstance(markdown, _Markdown)
        language, _, remark = token.info.strip().partition(" ")
        return cls(language.lower(), remark, markdown.colours)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._remark:
            yield Text(self._remark, "markdown.link_url")
        code = self.text.plain.rstrip()
        longest = max(map(cell_len, code.expandtabs(4).split("\n")))
        short = len(code) <= _MOST_CODE and longest <= _LONGEST_LINE
        lexer = self.lexer_name if short and self.lexer_name in _LANGUAGES else "text"
        wide = longest > options.max_width  # wrapping costs a pass for every line
        yield Syntax(code, lexer, theme=self._colours, word_wrap=wide)


class _Heading(Heading):
    """A heading at the left edge."""

    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = dict.fromkeys(Heading.LEVEL_ALIGN, "left")


class _Table(TableElement):
    """A table that breaks a word that is too long for its column, instead of cutting it off."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            if isinstance(table, Table):
                for column in table.columns:
                    column.overflow = "fold"
            yield table


class _Markdown(Markdown):
    """Markdown that was parsed already."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
        "table_open": _Table,
    }

    def __init__(self, colours: SyntaxTheme) -> None:
        super().__init__("", hyperlinks=False)
        self.colours = colours

    def take(self, parsed: list[MarkdownToken]) -> None:
        """Show these tokens from now on."""
        self.parsed = parsed
        for token in parsed:
            if token.type in _CODE:
                token.content = clean(token.content)
            for child in token.children or ():
                _show_as_written(child)

    @property
    def table_cells(self) -> int:
        return sum(token.type in {"th_open", "td_open"} for token in self.parsed)


def _show_as_written(token: MarkdownToken) -> None:
    """Keep line ends where the model made them, but none that entities spell, and say where images
    and links lead."""
    token.content = clean(token.content, one_line=True)
    title = (
        f' "{clean(str(token.attrs["title"]), one_line=True)}"' if token.attrs.get("title") else ""
    )
    if token.type == "softbreak":
        token.type = "hardbreak"
    elif token.type == "link_open":
        token.attrs["href"] = f"{token.attrs.get('href', '')}{title}"
    elif token.type == "image":
        token.type, token.tag, token.children = "text", "", None
        token.content = f"![{token.content}]({token.attrs.get('src', '')}{title})"


def _styles(looks: Looks) -> dict[str, Style]:
    headings = {f"markdown.h{level}": looks.heading for level in range(1, 7)}
    return {
        **headings,
        "markdown.code": looks.code,
        "markdown.code_block": Style.null(),
        "markdown.block_quote": looks.quote,
        "markdown.hr": looks.rule,
        "markdown.item.bullet": looks.bullet,
        "markdown.item.number": looks.bullet,
        "markdown.link": Style.null(),
        "markdown.link_url": looks.link,
        "markdown.table.border": looks.rule,
        "markdown.table.header": Style(bold=True),
    }
