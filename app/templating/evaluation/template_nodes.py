"""Which parts of Jinja's language templates may use, and how they are rewritten before Jinja
compiles them: comparisons, loops, slices and `~` become filters with the rules of plain JSON.
"""

from collections.abc import Iterator
from typing import cast

from jinja2 import TemplateSyntaxError, nodes
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream
from jinja2.visitor import NodeTransformer

from app.templating.evaluation.filters import COMPARE, CONCAT, FILTERS, ITERATE, SLICE, TESTS

# Jinja's parser and Python's compiler recurse; these limits are below theirs.
_MAX_TOKENS = 8_000
_MAX_BRACKETS = 30
_MAX_PREFIXES = 40
_MAX_BLOCKS = 15
_MAX_DEPTH = 70
_BRACKETS = {"lparen": 1, "lbracket": 1, "lbrace": 1, "rparen": -1, "rbracket": -1, "rbrace": -1}
_BLOCKS = {"if", "for", "with", "filter", "set"}
TAGS = ("if", "elif", "else", "for", "set", "with", "filter")
_LOOP_CALLS = {"cycle", "changed"}
_HIDDEN_NAMES = {"self", "super", "caller", "varargs", "kwargs"}
_STATEMENTS = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For, nodes.Assign),
    *(nodes.AssignBlock, nodes.With, nodes.FilterBlock),
)
_EXPRESSIONS = (
    *(nodes.Name, nodes.Const, nodes.Tuple, nodes.List, nodes.Dict, nodes.Pair, nodes.Keyword),
    *(nodes.CondExpr, nodes.Filter, nodes.Test, nodes.Call, nodes.Getitem, nodes.Getattr),
    *(nodes.Slice, nodes.Concat, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not),
    *(nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Pow),
    *(nodes.Neg, nodes.Pos),
)
_ALLOWED = frozenset((*_STATEMENTS, *_EXPRESSIONS))


class TemplateTooComplex(TemplateSyntaxError):
    """The template is beyond one of the limits."""


class TokenLimits(Extension):
    """Refuses what would cost the parser too much time or stack, before the parser reads it."""

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        line, blocks, brackets, prefixes, count, previous = 1, 0, 0, 0, 0, ""
        try:
            for token in stream:
                line, kind = token.lineno, token.type
                str(token.value)  # the compiler does the same with a number
                count += 1
                if kind in {"variable_begin", "block_begin"}:
                    brackets = prefixes = 0
                elif previous == "block_begin" and kind == "name":
                    blocks += _block_depth(token)
                elif kind in {"add", "sub"} or token.test_any("name:not", "name:else"):
                    prefixes += 1
                elif kind == "comma":
                    prefixes = 0
                brackets += _BRACKETS.get(kind, 0)
                if count > _MAX_TOKENS:
                    raise TemplateTooComplex("the template is too long", line)
                if brackets > _MAX_BRACKETS or blocks > _MAX_BLOCKS or prefixes > _MAX_PREFIXES:
                    raise TemplateTooComplex("the template is nested too deeply", line)
                yield token
                previous = kind
        except ValueError as error:  # Python neither reads nor writes thousands of digits
            raise TemplateTooComplex("a number has too many digits", line) from error


def _block_depth(token: Token) -> int:
    tag = token.value.removeprefix("end")
    if tag not in TAGS:
        raise TemplateSyntaxError(
            f"the tag {token.value[:50]!r} is not allowed; only {', '.join(TAGS)}", token.lineno
        )
    # `set` with a value has no end tag: it is not counted, its block has depth of its own.
    if tag not in _BLOCKS or tag == "set":
        return 0
    return -1 if token.value.startswith("end") else 1


def check_nodes(template: nodes.Template) -> None:
    """Raises TemplateSyntaxError for a part of the language that is not allowed."""
    layer: list[nodes.Node] = [template]
    depth = 0
    while layer:
        depth += 1
        if depth > _MAX_DEPTH:
            line = layer[0].lineno
            raise TemplateTooComplex("an expression has too many operations", line)
        for node in layer:
            _check_node(node)
        layer = [child for node in layer for child in node.iter_child_nodes()]


def _check_node(node: nodes.Node) -> None:
    problem = None
    match node:
        case nodes.Call():
            problem = _call_problem(node)
        case nodes.Filter() if node.name not in FILTERS:
            problem = f"the filter {node.name[:50]!r} is unknown"
        case nodes.Test() if node.name not in TESTS:
            problem = f"the test {node.name[:50]!r} is unknown"
        case nodes.Name() if node.name in _HIDDEN_NAMES:
            problem = f"the name {node.name!r} is unknown"
        case nodes.For() if node.recursive:
            problem = "recursive loops are not allowed"
        case nodes.NSRef():
            problem = "`set` takes a name without a dot"
        case nodes.Getattr() | nodes.Getitem() if isinstance(node.node, nodes.Const):
            problem = "a constant has no keys"
        case _ if type(node) not in _ALLOWED:
            problem = f"{type(node).__name__} is not allowed"
    if problem:
        raise TemplateSyntaxError(problem, node.lineno)


def _call_problem(node: nodes.Call) -> str | None:
    if node.dyn_args or node.dyn_kwargs or node.kwargs:
        return "calls take no `*`, `**` or named arguments"
    match node.node:
        case nodes.Name(name="range"):
            return None
        case nodes.Getattr(node=nodes.Name(name="loop"), attr=attribute):
            if attribute in _LOOP_CALLS:
                return None
    return "calls are not allowed, except `range`, `loop.cycle` and `loop.changed`; use filters"


class Rewriter(NodeTransformer):
    """Replaces nodes for which Jinja generates plain Python operators."""

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802  # Jinja's name
        self.generic_visit(node)
        operands: list[nodes.Expr] = []
        for operand in node.ops:
            operands += [nodes.Const(operand.op), operand.expr]
        return _filter(COMPARE, node.expr, operands)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filter(CONCAT, node.nodes[0], node.nodes[1:])

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return nodes.List(node.items, lineno=node.lineno) if node.ctx == "load" else node

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.iter = _filter(ITERATE, node.iter, [])
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        if not isinstance(node.arg, nodes.Slice):
            return node
        bounds = (node.arg.start, node.arg.stop, node.arg.step)
        return _filter(SLICE, node.node, [bound or nodes.Const(None) for bound in bounds])


def _filter(name: str, base: nodes.Node, arguments: list[nodes.Expr]) -> nodes.Filter:
    value = cast("nodes.Expr", base)
    return nodes.Filter(value, name, arguments, [], None, None, lineno=base.lineno)
