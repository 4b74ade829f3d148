"""Parses templates with Jinja and accepts a small part of its language. The accepted nodes become
expressions of our own: nothing is compiled to Python, so that no attribute or call is reachable.
"""

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Any

from jinja2 import Environment, TemplateSyntaxError, nodes
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream
from jinja2.sandbox import ImmutableSandboxedEnvironment

from app.templating.template_expressions import (
    And,
    Branches,
    Choice,
    Comparison,
    Constant,
    Expression,
    FilterUse,
    Lookup,
    Name,
    Not,
    Or,
    Output,
    Part,
    Template,
    TemplateProblem,
    Text,
)
from app.templating.template_filters import FILTERS, Parameter

# Jinja takes some 10 microseconds for a token and a dozen frames of the stack for a bracket. Limits
# on tokens decide alike, however much of the stack the caller uses.
_MAX_TOKENS = 4_000
_MAX_LEXEMES = 9_000  # with spaces and comments
_MAX_BRACKETS = 15
_MAX_BLOCKS = 15
_MAX_PREFIXES = 20
_MAX_DEPTH = 50
_MAX_NUMBER = 2**63
_MAX_MESSAGE = 300
_TAGS = {"if": 1, "elif": 0, "else": 0, "endif": -1}
_BRACKETS = {"lparen": 1, "lbracket": 1, "lbrace": 1, "rparen": -1, "rbracket": -1, "rbrace": -1}
_ESCAPED_TEXT = re.compile(
    r"(?:[^\\]|\\(?:[\\'\"abfnrtv\n]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}))*+"
)
_REFUSED: dict[type[nodes.Node], str] = {
    nodes.Call: "calls are not allowed",
    nodes.Concat: "`~` is not allowed: write one {{ expression }} after the other",
    nodes.BinExpr: "arithmetic is not allowed",
    nodes.UnaryExpr: "arithmetic is not allowed",
    nodes.Test: "tests with `is` are not allowed: compare with `none`",
    nodes.Slice: "slices are not allowed",
    nodes.Tuple: "lists of values are not allowed",
    nodes.List: "lists of values are not allowed",
    nodes.Dict: "dictionaries are not allowed",
}


class _TokenLimits(Extension):
    """Refuses what would cost the parser too much time or stack, before the parser reads it."""

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        line, blocks, brackets, prefixes, count, previous = 1, 0, 0, 0, 0, ""
        try:
            for token in stream:
                line, kind = token.lineno, token.type
                count += 1
                if kind in {"variable_begin", "block_begin"}:
                    brackets = prefixes = 0
                elif previous == "block_begin" and kind == "name":
                    blocks += _tag_depth(token)
                elif kind in {"add", "sub"} or token.test_any("name:not", "name:else"):
                    prefixes += 1
                brackets += _BRACKETS.get(kind, 0)
                if count > _MAX_TOKENS:
                    raise TemplateSyntaxError("the template is too long", line)
                if brackets > _MAX_BRACKETS or blocks > _MAX_BLOCKS or prefixes > _MAX_PREFIXES:
                    raise TemplateSyntaxError("the template is nested too deeply", line)
                yield token
                previous = kind
        except ValueError as error:  # Python converts no integer of thousands of digits
            raise TemplateSyntaxError("a number has too many digits", line) from error


def _tag_depth(token: Token) -> int:
    if token.value not in _TAGS:
        raise TemplateSyntaxError(
            f"the tag {token.value!r} is not allowed; only {', '.join(_TAGS)}", token.lineno
        )
    return _TAGS[token.value]


@cache
def _environment() -> Environment:
    return ImmutableSandboxedEnvironment(extensions=[_TokenLimits], keep_trailing_newline=True)


def parse(source: str, names: AbstractSet[str]) -> Template:
    """Raises TemplateProblem for a template outside of the language or with another name."""
    try:
        _check_escapes(source)
        body = _environment().parse(source).body
        return Template(_Builder(names).parts(body))
    except TemplateSyntaxError as error:
        message = (error.message or "the syntax is invalid")[:_MAX_MESSAGE]
        raise TemplateProblem(f"line {error.lineno}: {message}") from None
    except RecursionError:
        raise TemplateProblem("line 1: the template is nested too deeply") from None


def _check_escapes(source: str) -> None:
    """Refuses unknown escapes: Python warns about them today and will refuse them."""
    if "\\" not in source:
        return
    for count, (line, kind, text) in enumerate(_environment().lex(source)):
        if count > _MAX_LEXEMES:
            raise TemplateSyntaxError("the template is too long", line)
        if kind == "string" and not _ESCAPED_TEXT.fullmatch(text):
            raise TemplateSyntaxError("a text has an unknown escape after `\\`", line)


class _Builder:
    """Turns Jinja's nodes into expressions."""

    def __init__(self, names: AbstractSet[str]) -> None:
        self._names = names

    def parts(self, body: list[nodes.Node]) -> tuple[Part, ...]:
        return tuple(part for node in body for part in self._parts_of(node))

    def _parts_of(self, node: nodes.Node) -> Iterator[Part]:
        match node:
            case nodes.Output():
                for child in node.nodes:
                    if isinstance(child, nodes.TemplateData):
                        yield Text(child.data)
                    else:
                        yield Output(self._build(child, 0))
            case nodes.If():
                branches = [
                    (self._build(branch.test, 0), self.parts(branch.body))
                    for branch in (node, *node.elif_)
                ]
                yield Branches((*branches, (Constant(constant=True), self.parts(node.else_))))
            case _:
                raise _refusal(node)

    def _build(self, node: nodes.Node, depth: int) -> Expression:
        if depth > _MAX_DEPTH:
            raise TemplateSyntaxError("an expression has too many operations", node.lineno)
        match node:
            case nodes.Const() | nodes.Neg(node=nodes.Const()):
                return Constant(_constant(node))
            case nodes.Name():
                return self._name(node)
            case nodes.Filter():
                return self._filter(node, depth + 1)
            case nodes.Getattr() | nodes.Getitem():
                return self._lookup(node, depth + 1)
        return self._operation(node, depth + 1)

    def _lookup(self, node: nodes.Getattr | nodes.Getitem, depth: int) -> Lookup:
        if isinstance(node.node, nodes.Const):
            raise TemplateSyntaxError("a constant has no keys", node.lineno)
        key = node.attr if isinstance(node, nodes.Getattr) else _key(node.arg)
        return Lookup(self._build(node.node, depth), key)

    def _operation(self, node: nodes.Node, depth: int) -> Expression:
        match node:
            case nodes.Compare():
                operands = ((item.op, self._build(item.expr, depth)) for item in node.ops)
                return Comparison(self._build(node.expr, depth), tuple(operands))
            case nodes.And():
                return And(self._build(node.left, depth), self._build(node.right, depth))
            case nodes.Or():
                return Or(self._build(node.left, depth), self._build(node.right, depth))
            case nodes.Not():
                return Not(self._build(node.node, depth))
            case nodes.CondExpr():
                children = (node.test, node.expr1, node.expr2 or nodes.Const(None))
                return Choice(*(self._build(child, depth) for child in children))
        raise _refusal(node)

    def _name(self, node: nodes.Name) -> Name:
        if node.name not in self._names:
            known = ", ".join(sorted(self._names))
            raise TemplateSyntaxError(
                f"the name {node.name[:50]!r} is unknown; known names: {known}", node.lineno
            )
        return Name(node.name)

    def _filter(self, node: nodes.Filter, depth: int) -> FilterUse:
        rule = FILTERS.get(node.name)
        if rule is None or node.node is None:
            raise TemplateSyntaxError(
                f"the filter {node.name[:50]!r} is not allowed; only {', '.join(FILTERS)}",
                node.lineno,
            )
        arguments = _arguments(node, rule.parameters)
        values = (self._argument(arguments.get(item.name), item, depth) for item in rule.parameters)
        return FilterUse(self._build(node.node, depth), rule, tuple(values))

    def _argument(self, node: nodes.Node | None, item: Parameter, depth: int) -> Expression:
        if node is None:
            return Constant(item.default)
        value = self._build(node, depth)
        is_valid = isinstance(value, Constant) and item.is_valid(value.constant)
        if item.rule and not is_valid:
            raise TemplateSyntaxError(f"{item.name!r} must be {item.rule}", node.lineno)
        return value


def _arguments(node: nodes.Filter, parameters: tuple[Parameter, ...]) -> dict[str, nodes.Node]:
    names = [parameter.name for parameter in parameters]
    arguments: dict[str, nodes.Node] = dict(zip(names, node.args, strict=False))
    arguments |= {str(pair.key): pair.value for pair in node.kwargs}
    is_complete = len(arguments) == len(node.args) + len(node.kwargs)
    if node.dyn_args or node.dyn_kwargs or not is_complete or not arguments.keys() <= set(names):
        expected = ", ".join(names) or "none"
        raise TemplateSyntaxError(
            f"the filter {node.name!r} has other arguments: {expected}", node.lineno
        )
    return arguments


def _constant(node: nodes.Const | nodes.Neg) -> Any:
    is_negative = isinstance(node, nodes.Neg)
    value = (node.node if isinstance(node, nodes.Neg) else node).as_const()
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_negative and not is_number:
        raise _refusal(node)
    if is_number and abs(value) >= _MAX_NUMBER:
        raise TemplateSyntaxError("a number is too large", node.lineno)
    return -value if is_negative else value


def _key(node: nodes.Node) -> str | int:
    if isinstance(node, nodes.Slice):
        raise _refusal(node)
    match node:
        case nodes.Const() | nodes.Neg(node=nodes.Const()):
            value = _constant(node)
            if isinstance(value, str | int) and not isinstance(value, bool):
                return value
    raise TemplateSyntaxError("a key in brackets must be a string or an integer", node.lineno)


def _refusal(node: nodes.Node) -> TemplateSyntaxError:
    kind = type(node)
    phrases = (phrase for refused, phrase in _REFUSED.items() if issubclass(kind, refused))
    return TemplateSyntaxError(next(phrases, f"{kind.__name__} is not allowed"), node.lineno)
