import itertools
import sys
import threading
import time

import pytest

from edgespec.errors import TemplateError
from edgespec.text.budget import Limits
from edgespec.text.template import ChatTemplate, Message

HASTY = Limits(seconds=0.2)
SMALL = Limits(size=10_000, total=100_000, seconds=1.0)
TALK = [Message("user", "hi")]


def render(source: str, limits: Limits = SMALL) -> str:
    return ChatTemplate(source, "<s>", "</s>", limits=limits).render(TALK)


def growing(step: str) -> str:
    """A template that applies `step` to ns.x a hundred times."""
    loop = "{% set ns = namespace(x='ab') %}{% for i in range(100) %}" + step + "{% endfor %}"
    return loop + "{{ ns.x }}"


@pytest.mark.parametrize(
    "source",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% set r = range(99999) %}{% for a in r %}{% for b in r %}{% endfor %}{% endfor %}",
        "{% set r = range(99999) %}" + "{% for b in r if false %}{% endfor %}" * 200,
        "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}",
        "{% set r = range(99999)|list %}{{ r|select('in', r)|list }}",
        "{% for a in range(99999) recursive %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% set a = range(99999)|list %}{% set b = range(99999)|list %}"
        + "{% if a == b %}{% endif %}" * 1000,
    ],
    ids=itertools.count(),
)
def test_a_template_that_runs_too_long_is_ended(source):
    before = time.thread_time()
    with pytest.raises(TemplateError, match=r"longer than 0\.2 seconds.*another model"):
        render(source, HASTY)
    assert time.thread_time() - before < 2.0


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'a' * 1000000000 }}",
        "{{ 1000000000 * 'a' }}",
        "{{ ['a'] * 1000000000 }}",
        "{{ 9 ** (9 ** 9) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%*d' % (1000000000, 1) }}",
        "{{ '%1000000000d'|format(1) }}",
        "{{ '{:1000000000}'.format(1) }}",
        "{{ '{:{}}'.format(1, 1000000000) }}",
        "{{ '{x:1000000000}'.format_map({'x': 1}) }}",
        "{{ 'a'.ljust(1000000000) }}",
        "{{ 'a'.rjust(1000000000) }}",
        "{{ 'a'.zfill(1000000000) }}",
        "{{ 'a'.center(1000000000) }}",
        "{{ '\t'.expandtabs(1000000000) }}",
        "{{ 'a\nb'|indent(1000000000) }}",
        "{{ {'a': 1}|tojson(indent=1000000000) }}",
        "{{ ('a' * 9000).replace('a', 'b' * 9000) }}",
        "{{ ('a' * 9000)|replace('a', 'b' * 9000) }}",
        "{{ range(9000)|join('b' * 9000) }}",
        "{{ ('b' * 9000).join('a' * 9000) }}",
        "{{ ('a' * 9000).translate({97: 'b' * 9000}) }}",
        "{% for i in range(9999) %}word {% endfor %}",
        "{% macro f() %}{% for i in range(9999) %}word {% endfor %}{% endmacro %}{{ f()|length }}",
        "{{ range(99999)|list|length }}",
        growing("{% set ns.x = ns.x ~ ns.x %}"),
        growing("{% set ns.x = ns.x + ns.x %}"),
        growing("{% set ns.x %}{{ ns.x }}{{ ns.x }}{% endset %}"),
        growing("{% set ns.x = [ns.x, ns.x] %}"),
        growing("{% set ns.x = (ns.x, ns.x) %}"),
        growing("{% set ns.x = {'a': ns.x, 'b': ns.x} %}"),
        growing("{% set ns.x = dict(a=ns.x, b=ns.x) %}"),
        growing("{% set ns.x = '%s%s' % (ns.x, ns.x) %}"),
        growing("{% set ns.x = '{0}{0}'.format(ns.x) %}"),
        growing("{% set ns.x = [ns.x, ns.x]|join %}"),
        "{% set b = 'x' * 9999 %}" + "".join(f"{{% set v{n} = b[1:] %}}" for n in range(20)),
        "{{ 3 ** 99999 }}",
        growing(
            "{% set ns.x = i + 3 %}{% for j in range(99) %}{% set ns.x = ns.x * ns.x %}{% endfor %}"
        ),
    ],
    ids=itertools.count(),
)
def test_a_template_that_grows_too_much_is_ended_before_it_does(source):
    with pytest.raises(TemplateError, match=r"more than|above 9,999"):
        render(source)


def test_a_template_longer_than_256_kib_is_not_even_read():
    with pytest.raises(TemplateError, match="longer than 262,144"):
        ChatTemplate("{{" * 131_073, "", "").render(TALK)


def test_an_output_of_more_than_4_mib_is_refused_and_one_of_just_that_passes():
    size = 4 * 1024 * 1024
    assert len(ChatTemplate(f"{{{{ 'x' * {size} }}}}", "", "").render([])) == size
    with pytest.raises(TemplateError, match="4,194,304"):
        ChatTemplate(f"{{{{ 'x' * {size} }}}}y", "", "").render([])


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{{ foo( }}", "line 1"),
        ("{% for %}", "TemplateSyntaxError"),
        ("{{ messages[0].foo.bar }}", "no attribute 'foo'"),
        ("{{ unknown() }}", "'unknown' is undefined"),
        ("{{ 'a'|nofilter }}", "nofilter"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ 'a' + 1 }}", "TypeError"),
        ("{% include 'passwords' %}", "TemplateNotFound"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "RecursionError"),
        ("{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}", "RecursionError"),
        ("{% for a in [1] %}" * 40 + "{% endfor %}" * 40, "nested"),
        ("{% for i in range(999999999) %}{% endfor %}", "Range too big"),
        ("{{ ''.__class__.__mro__ }}", "SecurityError"),
        ("{{ messages.append(1) }}", "SecurityError"),
        ("{{ strftime_now.__self__.year }}", "SecurityError"),
        ("{{ lipsum(n=9) }}", "'lipsum' is undefined"),
    ],
    ids=itertools.count(),
)
def test_whatever_goes_wrong_in_a_template_is_a_template_error_that_says_what(source, words):
    with pytest.raises(TemplateError, match="chat template cannot be rendered") as caught:
        render(source)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_namespace_that_holds_itself_can_be_shown():
    assert render("{% set n = namespace() %}{% set n.n = n %}{{ n }}") == "<namespace>"


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("{{ {'a<b': 'é'}|tojson }}", '{"a<b": "é"}'),
        ("{{ {'b': 1, 'a': [1]}|tojson(indent=2) }}", '{\n  "b": 1,\n  "a": [\n    1\n  ]\n}'),
        ("{{ '%s-%5.1f' % ('a', 2) }}", "a-  2.0"),
        ("{{ '{}-{:>4}'.format('a', 2) }}", "a-   2"),
        ("{{ 'a'.ljust(3) ~ '|' ~ 1 }}", "a  |1"),
        ("{{ 2 ** 10 + 7 // 2 - 7 % 4 }}", "1024"),
        (
            "{% for i in [1, 2, 3] %}{% if i == 2 %}{% continue %}{% endif %}{{ i }}{% endfor %}",
            "13",
        ),
        ("{% for i in [1, 2, 3] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "1"),
        ("{% set a, b = 1, 2 %}{{ a }}{{ b }}{{ (1, 2) }}{{ [1, 2, 3][1:] }}", "12(1, 2)[2, 3]"),
        ("{% for k, v in {'x': 1}.items() %}{{ k }}={{ v }}{% endfor %}", "x=1"),
        ("{{ {'b': 1, 'a': 2}|items|list }}", "[('b', 1), ('a', 2)]"),
        ("{{ {'b': 1, 'a': 2}|dictsort }}", "[('a', 2), ('b', 1)]"),
        ("{{ messages|map(attribute='role')|join(',') }}", "user"),
        ("{{ messages|selectattr('role', 'equalto', 'user')|list|length }}", "1"),
        ("{% generation %}{{ 1 }}{% endgeneration %}", "1"),
        ("{% if 1 < 2 < 3 and 'h' in 'hi' and not tools %}yes{% endif %}", "yes"),
        ("{{ strftime_now('%Y')|length }}", "4"),
        ("  {% if true %}\n  a\n  {% endif %}\n", "  a\n"),
        ("{{ bos_token }}{{ eos_token }}", "<s></s>"),
        (
            "{% macro f(x) %}<{{ x }}{{ caller() }}>{% endmacro %}{% call f(1) %}in{% endcall %}",
            "<1in>",
        ),
    ],
    ids=itertools.count(),
)
def test_what_honest_templates_use_works_as_usual(source, shown):
    assert render(source) == shown


def test_two_threads_have_their_own_limits():
    ends: list[str] = []
    loop = "{% for a in range(99999) %}{% for b in range(999) %}{% endfor %}{% endfor %}"
    slow = ChatTemplate(loop, "", "", limits=HASTY)

    def run() -> None:
        with pytest.raises(TemplateError) as caught:
            slow.render(TALK)
        ends.append(str(caught.value))

    thread = threading.Thread(target=run)
    thread.start()
    assert [ChatTemplate("ok", "", "").render(TALK) for _ in range(50)] == ["ok"] * 50
    thread.join()
    assert ["seconds" in end for end in ends] == [True]


def test_rendering_leaves_trace_and_profile_functions_alone():
    seen = []

    def trace(frame, event, arg):
        seen.append(event)

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        render("{{ 1 }}")
        assert sys.gettrace() is trace
    finally:
        sys.settrace(before)
    assert "call" in seen
