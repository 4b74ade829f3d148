from collections.abc import Iterator

import pytest

from tests.browser.conftest import browser, page, recording, tab
from tests.docs.shell import run_instance
from tests.local.instance import Up

__all__ = ["browser", "page", "recording", "tab"]


@pytest.fixture(scope="module")
def instance() -> Iterator[Up]:
    """One for each module: pages change settings of the administrator."""
    with run_instance() as started:
        yield started
