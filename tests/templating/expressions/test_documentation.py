"""The page about templates: its examples have their results, and its lists are complete."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.templating.evaluation.filters import FILTERS, TESTS
from app.templating.evaluation.template_nodes import TAGS
from app.templating.expressions import Expressions, Source

_PAGE = (Path(__file__).parents[3] / "docs" / "templates.md").read_text(encoding="utf-8")
_VALUES = {"input": json.loads(re.findall(r"```json\n(.*?)```", _PAGE, re.DOTALL)[0])}


def _list_examples(heading: str) -> Iterator[tuple[str, Any]]:
    section = _PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    (block,) = re.findall(r"```text\n(.*?)```", section, re.DOTALL)
    for line in block.splitlines():
        source, _, result = line.partition("→")
        yield source.rstrip(), json.loads(result)


async def test_the_templates_have_their_results(
    expressions: Expressions, subtests: pytest.Subtests
) -> None:
    for source, result in _list_examples("Templates"):
        with subtests.test(source):
            assert await expressions.check([Source("template", source, "")], ["input"]) == []
            assert await expressions.render(source, _VALUES, group="a") == result


async def test_the_conditions_have_their_results(
    expressions: Expressions, subtests: pytest.Subtests
) -> None:
    for source, result in _list_examples("Conditions"):
        with subtests.test(source):
            assert await expressions.check([Source("condition", source, "")], ["input"]) == []
            assert await expressions.evaluate(source, _VALUES, group="a") is result


def test_all_filters_tests_and_tags_are_listed() -> None:
    table = _PAGE.partition("| filter |")[2].partition("\n\n")[0]
    cells = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    listed = set(re.findall(r"`(\w+)[`(]", "".join(cells)))
    assert listed == {name for name in FILTERS if name.isalpha()}
    tests = _PAGE.partition("\nTests, as in")[2].partition(":")[2].partition(".\n")[0]
    assert set(re.findall(r"`([^`]+)`", tests)) == set(TESTS)
    tags = re.findall(r"is a tag \((.*?)\)", _PAGE, re.DOTALL)[0]
    # The lexer handles `raw`.
    assert set(re.findall(r"`(\w+)`", tags)) == {*TAGS, "raw"}
