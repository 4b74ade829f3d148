from tests.deliveries.conftest import courier, receiver, tokyo_time
from tests.subscriptions.conftest import accept_unhandled_actions

__all__ = ["accept_unhandled_actions", "courier", "receiver", "tokyo_time"]
