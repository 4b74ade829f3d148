from tests.webhooks.conftest import courier, receiver

__all__ = ["courier", "receiver"]
