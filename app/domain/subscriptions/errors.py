from app.kit.errors import NotFound


class SubscriptionNotFound(NotFound):
    code = "subscription_not_found"


class WorkflowNotFound(NotFound):
    code = "workflow_not_found"


class CannotRunAction(Exception):
    """It makes no sense to try again; the text says why and holds no secret."""
