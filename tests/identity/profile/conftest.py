import pytest

from tests.child_scripts import run_scripts_here


@pytest.fixture
def scripts_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures are drawn again in this process."""
    run_scripts_here(monkeypatch)
