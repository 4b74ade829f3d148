import pytest

from app.domain.subscriptions import actions
from tests.deliveries.conftest import courier, receiver

__all__ = ["courier", "receiver"]


@pytest.fixture(autouse=True)
def accept_unhandled_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workflow actions are validated and stored although no area runs them yet."""
    monkeypatch.setattr(actions, "is_handled", lambda _action: True)
