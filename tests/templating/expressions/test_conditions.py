"""The values of conditions in CEL."""

import pytest

from app.templating.expressions import ExpressionProblem, Expressions

_VALUES = {
    "input": {
        "amount": 100.5,
        "count": 101,
        "text": "grün",
        "nothing": None,
        "yes": True,
        "tags": ["a", "b"],
        "rows": [{"n": 1}, {"n": 2.0}],
        "object": {"k": 1},
    }
}
_VALID = [
    ("input.amount > 100", True),
    ("input.count > 100", True),
    ("input.count > 100.5", True),
    ("input.count == 101.0", True),
    ("input.amount < 100", False),
    ("1 == 1.0", True),
    ("input.count * 2 == 202", True),
    ("input.text == 'grün'", True),
    ("input.text.startsWith('gr') && input.text.matches('^g.*n$')", True),
    ("has(input.missing)", False),
    ("has(input.nothing) && input.nothing == null", True),
    ("'a' in input.tags && !('c' in input.tags)", True),
    ("'k' in input.object", True),
    ("input.rows.exists(row, row.n == 2)", True),
    ("input.rows.all(row, row.n > 1)", False),
    ("size(input.tags) == 2", True),
    ("input.yes ? true : false", True),
    ("false && input.missing", False),
    ("input.rows.map(row, row.n)[0] == 1", True),
]
_PROBLEMS = [
    ("input.missing == 1", "the key 'missing' does not exist; test it with has()"),
    ("input.tags[5] == 'a'", "index out of bounds"),
    ("1 / 0 == 1", "a division by zero"),
    ("input.text > 1", "No such overload; convert values with int(x)"),
    ("input.amount + 1 > 1", "Unsupported operation: float + int; convert values"),
    ("unknown", "the name 'unknown' is unknown; known names: input"),
    ("nope(1)", "'nope' is unknown"),
    ("input.text.matches('(')", "regex"),
    ("input.count", "must be true or false, not a number"),
    ("input.text", "must be true or false, not a text"),
    ("input.nothing", "must be true or false, not null"),
    ("input.tags", "must be true or false, not a list"),
    ("timestamp('2020-01-01T00:00:00Z')", "must be true or false"),
]


async def test_a_condition_has_its_value(
    expressions: Expressions, subtests: pytest.Subtests
) -> None:
    for condition, value in _VALID:
        with subtests.test(condition):
            assert await expressions.evaluate(condition, _VALUES, group="a") is value


async def test_a_condition_without_a_value_has_a_problem(
    expressions: Expressions, subtests: pytest.Subtests
) -> None:
    for condition, message in _PROBLEMS:
        with subtests.test(condition):
            with pytest.raises(ExpressionProblem) as caught:
                await expressions.evaluate(condition, _VALUES, group="a")
            assert message in str(caught.value)
            assert caught.value.code == "expression_error"
