from collections.abc import Iterator

import pytest

from tests.web.module_runner import ModuleRunner


@pytest.fixture(scope="session")
def modules() -> Iterator[ModuleRunner]:
    runner = ModuleRunner()
    yield runner
    runner.close()
