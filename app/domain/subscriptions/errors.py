from app.http.errors import NotFound


class SubscriptionNotFound(NotFound):
    code = "subscription_not_found"


class WorkflowNotFound(NotFound):
    code = "workflow_not_found"
