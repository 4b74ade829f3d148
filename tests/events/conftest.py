from tests.subscriptions.conftest import accept_unhandled_actions
from tests.webhooks.conftest import courier, receiver

__all__ = ["accept_unhandled_actions", "courier", "receiver"]
