from tests.messaging.deliveries.conftest import courier, receiver

__all__ = ["courier", "receiver"]
