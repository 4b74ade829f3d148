from app.kit.errors import NotFound


class SubscriptionNotFound(NotFound, code="subscription_not_found"): ...


class CannotRunAction(Exception):
    """The action must not be retried; the text gives the reason and contains no secret."""
