"""The documentation lists the texts that a page can replace."""

import re
from typing import Any

import pytest

from tests.docs.pages import DOCS
from tests.web.module_runner import ModuleRunner

_ROW = re.compile(r"^\| `data-text-([a-z-]+)` \| (.*) \|$", re.MULTILINE)
_LAUNCHER = {"open": "Open chat", "unread": "{count} unread"}


@pytest.fixture(scope="module")
def modules() -> Any:
    runner = ModuleRunner()
    yield runner
    runner.close()


def _read_rows(page: str) -> dict[str, str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    table = text.partition("<!-- texts of")[2].partition("<!-- end of texts -->")[0]
    return dict(_ROW.findall(table))


def _to_row(name: str, text: Any) -> tuple[str, str]:
    plain = text if isinstance(text, str) else text["other"]
    return re.sub("[A-Z]", lambda match: f"-{match[0].lower()}", name), plain.strip()


def test_the_texts_of_the_widget_are_listed(modules: ModuleRunner) -> None:
    texts = _LAUNCHER | modules.evaluate("widget/texts.js", "({ TEXTS }) => TEXTS")
    assert _read_rows("conversations.md") == dict(_to_row(*item) for item in texts.items())


def test_the_texts_of_the_form_page_are_listed(modules: ModuleRunner) -> None:
    read = "({ TEXTS, PROBLEMS }) => [TEXTS, PROBLEMS]"
    texts, problems = modules.evaluate("form/texts.js", read)
    sentences = {
        f"problem{name[0].upper()}{name[1:]}": item["field"] for name, item in problems.items()
    }
    expected = dict(_to_row(*item) for item in (texts | sentences).items())
    assert _read_rows("forms.md") == expected
