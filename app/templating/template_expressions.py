"""Templates as trees of expressions, which know no other data than the values of their run."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from app.templating.template_filters import COMPARISONS, Filter, Run, encode, look_up, to_text


class TemplateProblem(ValueError):
    """A template is refused; the message tells its author what is wrong and in which line."""


class Expression(Protocol):
    def value(self, run: Run) -> Any: ...


@dataclass(frozen=True, slots=True)
class Constant:
    constant: str | float | bool | None

    def value(self, _: Run) -> Any:
        return self.constant


@dataclass(frozen=True, slots=True)
class Name:
    name: str

    def value(self, run: Run) -> Any:
        return run.values[self.name]


@dataclass(frozen=True, slots=True)
class Lookup:
    base: Expression
    key: str | int

    def value(self, run: Run) -> Any:
        return look_up(self.base.value(run), self.key)


@dataclass(frozen=True, slots=True)
class FilterUse:
    base: Expression
    filter: Filter
    arguments: tuple[Expression, ...]

    def value(self, run: Run) -> Any:
        arguments = [argument.value(run) for argument in self.arguments]
        return self.filter.apply(run, self.base.value(run), *arguments)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A chain: `1 < a < 5` compares each operand with the one before it."""

    first: Expression
    operands: tuple[tuple[str, Expression], ...]

    def value(self, run: Run) -> bool:
        left = self.first.value(run)
        for operator, operand in self.operands:
            right = operand.value(run)
            if not COMPARISONS[operator](run, left, right):
                return False
            left = right
        return True


@dataclass(frozen=True, slots=True)
class And:
    left: Expression
    right: Expression

    def value(self, run: Run) -> Any:
        return self.left.value(run) and self.right.value(run)


@dataclass(frozen=True, slots=True)
class Or:
    left: Expression
    right: Expression

    def value(self, run: Run) -> Any:
        return self.left.value(run) or self.right.value(run)


@dataclass(frozen=True, slots=True)
class Not:
    operand: Expression

    def value(self, run: Run) -> bool:
        return not self.operand.value(run)


@dataclass(frozen=True, slots=True)
class Choice:
    test: Expression
    then: Expression
    otherwise: Expression

    def value(self, run: Run) -> Any:
        return (self.then if self.test.value(run) else self.otherwise).value(run)


class Part(Protocol):
    def texts(self, run: Run) -> Iterator[str]: ...


@dataclass(frozen=True, slots=True)
class Text:
    text: str

    def texts(self, _: Run) -> Iterator[str]:
        yield self.text


@dataclass(frozen=True, slots=True)
class Output:
    expression: Expression

    def texts(self, run: Run) -> Iterator[str]:
        value = self.expression.value(run)
        if not isinstance(value, dict | list):
            yield to_text(run, value)
            return
        text, cost = encode(value)
        yield text  # before the charge: an object beyond the budget is cut, not left out
        run.charge(cost)


@dataclass(frozen=True, slots=True)
class Branches:
    """The first branch whose test holds: `if`, `elif` and, with a constant test, `else`."""

    branches: tuple[tuple[Expression, tuple[Part, ...]], ...]

    def texts(self, run: Run) -> Iterator[str]:
        for test, parts in self.branches:
            if test.value(run):
                for part in parts:
                    yield from part.texts(run)
                return


@dataclass(frozen=True, slots=True)
class Template:
    parts: tuple[Part, ...]

    @property
    def expression(self) -> Expression | None:
        """The expression of a template that is nothing else."""
        match self.parts:
            case (Output(expression),):
                return expression
        return None
