"""Runs a template that nobody vouches for: no code but its own, and bounds on time and size.

Jinja's sandbox keeps a template from reaching Python, but not from looping or growing for ever.
So the parsed template is rewritten before it is compiled: loops, macros and comparisons check the
clock, and whatever makes a new value has it measured. No trace function is involved, so that
debuggers and coverage tools keep working.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from jinja2 import DictLoader, Template, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from edgespec.text.budget import LimitReached, Limits, current, limited, weight

_TICK, _MEASURE, _JOIN = "a tick", "a measure", "a join"  # no template can spell these names
_FILTERS = """
    abs capitalize count d default dictsort e escape first float format indent int items join
    last length list lower map max min reject rejectattr replace reverse safe select selectattr
    sort string title trim unique upper
""".split()  # noqa: SIM905  one word a line would hide how short the list is
# calls whose result may be longer than all that goes in
_SCALING = frozenset(
    "center expandtabs format indent join ljust replace rjust tojson translate zfill".split()  # noqa: SIM905
)
_ODD_FORMAT = re.compile(r"\d{5}|\*|:[^{}]*\{")
_INTEGER_BITS = 2**15


class Refused(Exception):
    """The template called raise_exception(); the message is the template's own."""


class _QuietNamespace(Namespace):
    """Namespaces can refer to each other, so that showing one may never end."""

    def __repr__(self) -> str:
        return "<namespace>"


class _Generation(Extension):
    """{% generation %}…{% endgeneration %} marks replies for training and shows its body."""

    tags = {"generation"}  # noqa: RUF012  declared so by Extension

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class Sandbox(ImmutableSandboxedEnvironment):
    """A Jinja environment with the names and settings that chat templates are written for.

    Source: Hugging Face transformers, "Writing a chat template".
    """

    intercepted_binops = frozenset(ImmutableSandboxedEnvironment.default_binop_table)

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[loopcontrols, _Generation],
            loader=DictLoader({}),
            optimized=False,  # the optimiser would take the checks for constants
            cache_size=0,
        )
        self.filters = {name: _guarded(name, self.filters[name]) for name in _FILTERS}
        self.filters |= {"tojson": _guarded("tojson", _to_json)}
        self.filters |= {_TICK: _tick, _MEASURE: _measure, _JOIN: _join}
        self.tests = {name: _guarded(name, test) for name, test in self.tests.items()}
        self.globals = {
            "range": self.globals["range"],
            "dict": dict,
            "namespace": _QuietNamespace,
            "raise_exception": _raise_exception,
        }

    def compiled(self, source: str, limits: Limits) -> Template:
        """`source` with the checks put in, to be given to fill().

        Raises: LimitReached, and what Jinja or Python's compiler finds wrong with it.
        """
        if len(source) > limits.source:
            raise LimitReached(f"is longer than {limits.source:,} characters")
        with limited(limits) as budget:
            template = self.from_string(_Bound().visit(self.parse(source)))
            budget.tick()
        return template

    def fill(self, template: Template, variables: Mapping[str, Any], limits: Limits) -> str:
        """The template's output.

        Raises: LimitReached, Refused, and whatever the template provokes in Jinja or Python.
        """
        with limited(limits) as budget:
            for value in variables.values():
                budget.measure(value)
            return template.render(variables)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        name = getattr(__obj, "__name__", "")
        owner = getattr(__obj, "__self__", None)
        args = tuple(map(_settled, args))
        _check_growth(name, (owner, *args, *kwargs.values()))
        return _measure(super().call(__context, __obj, *args, **kwargs))

    def concat(self, pieces: Iterable[str], /) -> str:
        """What Jinja joins outputs, macros and captured blocks with."""
        return _join(pieces)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        current().fits(_result_size(operator, left, right))
        return _measure(super().call_binop(context, operator, left, right))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        wrapped = super().wrap_str_format(value)
        if wrapped is None:
            return None

        def bounded(*args: Any, **kwargs: Any) -> str:
            _check_format(value.__self__, (*args, *kwargs.values()))
            return wrapped(*args, **kwargs)

        return bounded


class _Bound(NodeTransformer):
    """Puts the checks into a parsed template."""

    def visit_For(self, node: nodes.For) -> nodes.For:
        self._clock(node, node.body)
        if node.test is not None:
            node.test = _ticked(node.test)
        return node

    def visit_Macro(self, node: nodes.Macro) -> nodes.Macro:
        self._clock(node, node.body)
        return node

    def visit_CallBlock(self, node: nodes.CallBlock) -> nodes.CallBlock:
        self._clock(node, node.body)
        return node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Expr:
        self.generic_visit(node)
        return _ticked(node)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Expr:
        self.generic_visit(node)
        return _filtered(node, _MEASURE) if isinstance(node.arg, nodes.Slice) else node

    def visit_List(self, node: nodes.List) -> nodes.Expr:
        self.generic_visit(node)
        return _filtered(node, _MEASURE)

    def visit_Dict(self, node: nodes.Dict) -> nodes.Expr:
        self.generic_visit(node)
        return _filtered(node, _MEASURE)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Expr:
        self.generic_visit(node)
        return _filtered(node, _MEASURE) if node.ctx == "load" else node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Expr:
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), _JOIN)

    def _clock(self, node: nodes.Node, body: list[nodes.Node]) -> None:
        self.generic_visit(node)
        tick = nodes.Const(True, lineno=node.lineno)
        body.insert(0, nodes.ExprStmt(_filtered(tick, _TICK), lineno=node.lineno))


def _filtered(node: nodes.Expr, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


def _ticked(node: nodes.Node) -> nodes.And:
    tick = _filtered(nodes.Const(True, lineno=node.lineno), _TICK)
    return nodes.And(tick, node, lineno=node.lineno)


def _tick(value: Any) -> Any:
    current().tick()
    return value


def _measure(value: Any) -> Any:
    return current().measure(value)


def _join(pieces: Iterable[Any]) -> str:
    return current().join(pieces)


def _guarded(name: str, function: Any) -> Callable[..., Any]:
    """A filter or test that checks the clock, what goes in and what comes out."""
    skip = 1 if hasattr(function, "jinja_pass_arg") else 0

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        args = (*args[:skip], *map(_settled, args[skip:]))
        _check_growth(name, (*args[skip:], *kwargs.values()))
        return _measure(function(*args, **kwargs))

    return guarded


def _settled(value: Any) -> Any:
    """Lazy sequences as lists, so that they can be measured."""
    if isinstance(value, Iterator):
        return _measure(list(islice(value, current().limits.size + 1)))
    return value


def _check_growth(name: str, values: tuple[Any, ...]) -> None:
    """Refuse a call whose result may be far longer than what goes in."""
    budget = current()
    budget.tick()
    if name not in _SCALING:
        return
    if name == "format":
        _check_format(values[0], values[1:])
    weights = sorted((weight(value, budget.limits.size) for value in values), reverse=True)
    factors = [value for value in values if isinstance(value, int)] + weights[1:]
    if max(factors, default=0) * weights[0] > 16 * budget.limits.size:
        raise LimitReached(
            f"makes a text of more than {budget.limits.size:,} characters with '{name}'"
        )


def _check_format(text: object, values: Any) -> None:
    budget = current()
    if isinstance(text, str) and _ODD_FORMAT.search(text):
        raise LimitReached("formats text with a width above 9,999 or one that is computed")
    fields = str(text).count("{") + str(text).count("%")
    budget.fits(fields * weight(values, budget.limits.size))


def _result_size(operator: str, left: Any, right: Any) -> int:
    """Upper bound for the size of left (operator) right; 0 where it cannot grow."""
    if isinstance(left, int) and isinstance(right, int):
        if operator == "**":
            bits = left.bit_length() * max(right, 0)
        else:
            bits = left.bit_length() + right.bit_length()
        if bits > _INTEGER_BITS:
            raise LimitReached(f"computes a number of more than {_INTEGER_BITS:,} bits")
        return 0
    if operator == "%" and isinstance(left, str):
        _check_format(left, right)
    if operator == "*":
        for many, times in ((left, right), (right, left)):
            if isinstance(times, int) and isinstance(many, (str, list, tuple)):
                return weight(many, 2**40) * max(times, 0)
    if operator == "+" and isinstance(left, (str, list, tuple)):
        return weight(left, 2**40) + weight(right, 2**40)
    return 0


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON without the HTML escapes of Jinja's own filter; parameters as in transformers."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _raise_exception(message: object) -> None:
    raise Refused(str(message))
