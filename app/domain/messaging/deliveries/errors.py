from app.kit.errors import Conflict, NotFound


class DeliveryNotFound(NotFound, code="delivery_not_found"): ...


class WebhookInactive(Conflict, code="webhook_inactive"): ...
