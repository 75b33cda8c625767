"""Markdown as rows: what it looks like, that it hides nothing, and what it may cost."""

from __future__ import annotations

import itertools
import unicodedata
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

from edgespec.tui.rendered import Bounds, Looks, MarkdownSetter, code_blocks

MARKDOWN = st.lists(
    st.sampled_from(
        [
            "# ", "## ", "- ", "1. ", "> ", "**", "*", "_", "`", "```", "```python\n", "~~~\n", "|",
            "|-|-|\n", "---\n", "[", "](http://a.b)", "![", "<b>", "&#x202e;", "&#155;", "&amp;",
            "\n", "\n\n", "    ", "\t", "word", " words", "漢字", "👩\u200d🚀", "[a]: b\n", "\\",
            "~~",
        ]
    ),
    max_size=24,
).map("".join)  # fmt: skip
HOSTILE = st.text(
    alphabet=st.one_of(
        st.sampled_from("\x1b\x9b\x9d\x07\x00\x7f\r\n[]()*`#&;|<>!\u202e\u200b\u2066"),
        st.characters(),
    ),
    max_size=80,
)


def texts(markdown: str, width: int = 40) -> list[str]:
    rows = MarkdownSetter(Looks()).rows(markdown, width)
    assert rows is not None
    return [row.text.rstrip() for row in rows]


def style_of(markdown: str, word: str, looks: Looks | None = None) -> Style:
    rows = MarkdownSetter(looks or Looks()).rows(markdown, 40) or []
    runs = (run for row in rows for run in row.runs)
    style = next(look for text, look in runs if word in text)
    assert isinstance(style, Style)
    return style


def test_emphasis_is_attributes() -> None:
    assert style_of("a **strong** word", "strong").bold
    assert style_of("an *inclined* word", "inclined").italic
    assert style_of("a ~~wrong~~ word", "wrong").strike
    assert style_of("# Heading", "Heading").bold


def test_lists_quotes_tables_and_rules_keep_their_shape() -> None:
    assert texts("- one\n- two") == [" • one", " • two"]
    assert texts("> said") == ["▌ said"]
    assert [row.split() for row in texts("|a|b|\n|-|-|\n|1|2|")][0::2] == [["a", "b"], ["1", "2"]]
    assert texts("up\n\n---\n\ndown")[2].startswith("-----")


def test_headings_stand_at_the_left_edge() -> None:
    assert texts("# Heading") == ["Heading"]


def test_line_ends_stay_where_the_model_made_them() -> None:
    assert texts("two roads\ndiverged") == ["two roads", "diverged"]


def test_code_is_kept_as_it_is_and_its_parts_differ() -> None:
    looks = Looks(string=Style(color="#010203"), fence=Style(bgcolor="#040506"))
    fence = '```python\nif x:\n    print("*no* <b>markup</b> & more")\n```'
    assert texts(fence) == ["if x:", '    print("*no* <b>markup</b> & more")']
    assert style_of(fence, "*no*", looks).color == Style(color="#010203").color
    assert style_of(fence, "if", looks).bold
    assert style_of(fence, "x", looks).bgcolor == Style(bgcolor="#040506").bgcolor


def test_code_that_is_too_wide_is_broken_and_loses_nothing() -> None:
    code = "x = [" + ", ".join(str(number) for number in range(40)) + "]"
    rows = texts(f"```python\n{code}\n\n\ny\n```", 30)
    assert "".join(rows).replace(" ", "") == code.replace(" ", "") + "y"
    assert rows[-3:] == ["", "", "y"]
    assert texts("```python\n\tx = 1\n\n\ny\n```", 30) == ["    x = 1", "", "", "y"]


def test_code_of_a_language_nobody_knows_is_shown_plainly() -> None:
    assert texts("```nonsense\nif x:\n```") == ["if x:"]


@pytest.mark.parametrize(
    "markdown",
    [
        "<b>bold</b> and <!-- a comment -->",
        "<div>\na block\n</div>",
        "[name]: http://example.org",
        "![a picture](http://example.org/a.png)",
        "<script>",
    ],
)
def test_what_a_browser_would_hide_is_shown_as_it_is_written(markdown: str) -> None:
    assert "\n".join(texts(markdown, 60)) == markdown


def test_where_a_link_leads_is_seen_and_nothing_can_be_clicked() -> None:
    assert texts("[my bank](http://evil.example)") == ["my bank (http://evil.example)"]
    assert style_of("[my bank](http://evil.example)", "my bank").link is None
    assert style_of("<http://evil.example>", "http").link is None


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ('[my bank](http://a.example "not mine")', 'my bank (http://a.example "not mine")'),
        ('![a cat](http://a.example/a.png "not mine")',) * 2,
        ("```python title=run.py\nx\n```", "title=run.py\nx"),
    ],
)
def test_what_is_said_about_a_link_an_image_or_code_is_seen(markdown: str, shown: str) -> None:
    assert "\n".join(texts(markdown, 60)) == shown


def letters(text: str) -> Counter[str]:
    return Counter(char for char in text if char.isalpha())


@pytest.mark.parametrize(
    "markdown",
    [
        "|what|why|\n|-|-|\n|incomprehensibilities|x|\n|y|counterrevolutionaries|",
        "|" + "verylongheading|" * 5 + "\n" + "|-" * 5 + "|\n" + "|a" * 5 + "|",
        "|漢字漢字漢字|word|\n|-|-|\n|漢|漢字漢字漢字漢字|",
        "|👩\u200d🚀👩\u200d🚀|word|\n|-|-|\n|**bold** `code`|[link](http://a.example)|",
        "- a\n  - b\n    - c\n      - d\n        - e",
        "1. a\n   1. b\n      1. c\n         - 漢字\n99. d",
        "> > > > quoted\n> > > - item",
        "- item\n\n      code\n\n  - deeper\n\n    ```\n    fenced\n    ```\n",
    ],
)
def test_what_is_set_loses_no_letter_at_any_width(markdown: str) -> None:
    fitting = []
    for width in range(8, 61):
        rows = MarkdownSetter(Looks()).rows(markdown, width)
        if rows is not None:
            fitting.append(width)
            assert letters("".join(row.text for row in rows)) == letters(markdown), width
    assert set(range(30, 61)) <= set(fitting), "there is room enough"


def test_where_there_is_no_room_the_tokens_are_left() -> None:
    setter = MarkdownSetter(Looks())
    assert setter.rows("- a\n  - b\n    - c", 8) is None
    assert setter.rows("- a\n  - b\n    - c", 12) is not None
    assert setter.rows("|" + "漢|" * 8 + "\n" + "|-" * 8 + "|", 12) is None


def test_cells_that_have_no_column_are_not_lost() -> None:
    assert MarkdownSetter(Looks()).rows("|a|b|\n|-|-|\n|c|d|e|", 40) is None


PREFIXES = ["- ", "  - ", "    - ", "1. ", "   1. ", "> ", "> - ", "> > ", "# ", "    ", "", "|"]


@settings(deadline=None)
@given(
    lines=st.lists(
        st.tuples(st.sampled_from(PREFIXES), st.text("abcdefgh漢字| ", max_size=30)), max_size=8
    ),
    width=st.integers(8, 40),
)
def test_nested_text_loses_no_letter(lines: list[tuple[str, str]], width: int) -> None:
    markdown = "\n".join(prefix + words for prefix, words in lines)
    rows = MarkdownSetter(Looks()).rows(markdown, width)
    if rows is not None:
        assert letters("".join(row.text for row in rows)) == letters(markdown)


def test_entities_spell_no_control_characters_and_turn_no_text_around() -> None:
    shown = "".join(texts("a&#x202e;b &#27;[31m &#155;0m &rlm;&lrm; &#x2066;c&#12;d"))
    assert all(unicodedata.category(char) not in {"Cc", "Cf", "Cs"} for char in shown)
    assert shown.startswith("ab")


def assert_harmless(markdown: str, width: int) -> bool:
    """Whether there is anything that could have done harm."""
    rows = MarkdownSetter(Looks()).rows(markdown, width)
    for row in rows or []:
        assert row.length == len(row.text)
        assert cell_len(row.text) <= width
        for text, look in row.runs:
            assert isinstance(look, Style)
            assert look.link is None
            assert not look.meta
            allowed = {"\u200c", "\u200d"}  # spelled with in several scripts
            assert not [
                char
                for char in text
                if unicodedata.category(char) in {"Cc", "Cs"}
                or (char in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b")
                if char not in allowed
            ]
    return bool(rows)


@pytest.mark.parametrize("written", [MARKDOWN, HOSTILE], ids=["markdown", "hostile"])
def test_whatever_is_written_becomes_rows_that_fit_and_do_no_harm(
    written: st.SearchStrategy[str],
) -> None:
    seen: list[bool] = []

    @settings(deadline=None)
    @given(markdown=written, width=st.integers(8, 60))
    @example(markdown="0\u20280", width=8)
    @example(markdown="0&#x2028;0&#10;0", width=8)
    def check(markdown: str, width: int) -> None:
        seen.append(assert_harmless(markdown, width))

    check()
    assert sum(seen) > len(seen) / 2, "rows were looked at"


@settings(deadline=None)
@given(words=st.lists(st.text("abcdefgh", min_size=1, max_size=9), min_size=1, max_size=20))
def test_plain_prose_loses_no_word(words: list[str]) -> None:
    assert " ".join(texts(" ".join(words), 20)).split() == words


@pytest.mark.parametrize(
    "markdown",
    ["x" * 70_000, "|a" * 60 + "|\n" + "|-" * 60 + "|\n" + ("|b" * 60 + "|\n") * 50],
    ids=["long", "a giant table"],
)
def test_a_text_that_would_cost_too_much_is_left_to_its_tokens(markdown: str) -> None:
    assert MarkdownSetter(Looks()).rows(markdown, 40) is None


@pytest.mark.parametrize(
    "markdown",
    ["word *" * 400, "> " * 15 + "deep\n" * 50, "- item\n" * 300, "[" * 2000, "`a" * 2000],
    ids=["emphasis", "quotes", "list", "brackets", "ticks"],
)
def test_time_is_looked_at_while_a_text_is_set(markdown: str) -> None:
    ticks = itertools.count()
    bounds = Bounds(longest_s=10, clock=lambda: next(ticks))
    assert MarkdownSetter(Looks(), bounds).rows(markdown, 40) is None


@pytest.mark.parametrize(
    "markdown", ["> " * 5000 + "x", "- " * 5000 + "x", "*" * 5000, "[" * 5000, "![" * 3000]
)
def test_deep_nesting_does_no_harm(markdown: str) -> None:
    rows = MarkdownSetter(Looks()).rows(markdown, 40)
    assert rows is None or letters("".join(row.text for row in rows)) == letters(markdown)


def test_a_text_of_which_nothing_would_be_seen_is_left_to_its_tokens() -> None:
    assert MarkdownSetter(Looks()).rows("```\n```", 40) is None
    assert MarkdownSetter(Looks()).rows("", 40) == []


def test_code_blocks_are_the_code_and_nothing_else() -> None:
    text = "a\n```python\n\tif x:\n\t\ty\n```\nb\n\n- c\n  ~~~\n  d\n  ~~~\n\n```sh\nls -l"
    assert code_blocks(text) == ["\tif x:\n\t\ty\n", "d\n", "ls -l"]
    assert code_blocks("no code") == []
