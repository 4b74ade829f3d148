"""The rules of the account pages that need no page."""

import pytest

from tests.web.module_runner import ModuleRunner

_ORIGIN = "https://parley.test"
_DOCS = f"{_ORIGIN}/docs"
# The path of `next`, and where it leads.
_PATHS: dict[str | None, str] = {
    "/demo": f"{_ORIGIN}/demo",
    "/trace/cor_1?a=1#b": f"{_ORIGIN}/trace/cor_1?a=1#b",
    "/.//example.com": f"{_ORIGIN}//example.com",
    None: _DOCS,
    "": _DOCS,
    "demo": _DOCS,
    "//example.com": _DOCS,
    "///example.com": _DOCS,
    "/\\example.com": _DOCS,
    "/\t/example.com": _DOCS,
    "https://example.com": _DOCS,
    "javascript:alert(1)": _DOCS,
    "//[": _DOCS,
}
_FIND_NEXT = "({ findNext }, [path, origin]) => findNext(path, origin, '/docs')"
_PASSWORDS = {
    "": [],
    "a": ["lower"],
    "aB1": ["upper", "lower", "digit"],
    "Battery9Staple": ["length", "upper", "lower", "digit"],
    "ÉÀÖÜàé٣٣": ["length", "upper", "lower", "digit"],
    "😀😀😀😀": [],
}
_LIST_FULFILLED = "({ listFulfilled }, password) => listFulfilled(password)"


def test_people_are_led_to_pages_of_this_site_alone(
    modules: ModuleRunner, subtests: pytest.Subtests
) -> None:
    for path, url in _PATHS.items():
        with subtests.test(str(path)):
            assert modules.evaluate("pages/next.js", _FIND_NEXT, [path, _ORIGIN]) == url


def test_the_rules_that_a_password_fulfils_are_found(
    modules: ModuleRunner, subtests: pytest.Subtests
) -> None:
    for password, rules in _PASSWORDS.items():
        with subtests.test(password):
            assert modules.evaluate("pages/passwords.js", _LIST_FULFILLED, password) == rules
