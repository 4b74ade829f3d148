from app.kit.errors import NotFound


class WebhookNotFound(NotFound, code="webhook_not_found"): ...
