"""Addresses of authors that the form page follows."""

import pytest

from tests.web.module_runner import ModuleRunner

_CASES = {
    "https://example.com/a": "https://example.com/a",
    "http://example.com": "http://example.com/",
    " https://example.com": "https://example.com/",
    "javascript:alert(1)": None,
    " jAvAsCrIpT:alert(1)": None,
    "java\nscript:alert(1)": None,
    "data:text/html,x": None,
    "blob:https://example.com/1": None,
    "file:///etc/passwd": None,
    "//example.com": None,
    "/relative": None,
    "": None,
}
_TO_WEB_ADDRESS = "({ toWebAddress }, texts) => texts.map((text) => toWebAddress(text))"


def test_only_addresses_of_the_web_are_followed(
    modules: ModuleRunner, subtests: pytest.Subtests
) -> None:
    addresses = modules.evaluate("form/web-address.js", _TO_WEB_ADDRESS, list(_CASES))
    for (text, expected), address in zip(_CASES.items(), addresses, strict=True):
        with subtests.test(text):
            assert address == expected
