from app.http.errors import Conflict, NotFound


class WebhookNotFound(NotFound):
    code = "webhook_not_found"


class DeliveryNotFound(NotFound):
    code = "delivery_not_found"


class WebhookInactive(Conflict):
    code = "webhook_inactive"
