from tests.messaging.deliveries.conftest import courier, receiver, tokyo_time

__all__ = ["courier", "receiver", "tokyo_time"]
