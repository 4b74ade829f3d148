"""The server chooses plural forms as browsers do."""

import pytest

from app.kit.languages import LANGUAGES
from app.kit.plurals import list_categories, select_category
from tests.web.module_runner import ModuleRunner

_COUNTS = [*range(130), 1_000, 1_001, 10_000, 999_999, 1_000_000, 1_000_001, 2_000_000]
_SELECT = """(_module, [language, counts]) => {
    const rules = new Intl.PluralRules(language);
    return [rules.resolvedOptions().pluralCategories, counts.map((count) => rules.select(count))];
}"""


def test_categories_are_those_of_browsers(modules: ModuleRunner, subtests: pytest.Subtests) -> None:
    for language in LANGUAGES:
        with subtests.test(language):
            categories, selected = modules.evaluate("form/texts.js", _SELECT, [language, _COUNTS])
            assert sorted(categories) == sorted(list_categories(language))
            assert selected == [select_category(language, count) for count in _COUNTS]
