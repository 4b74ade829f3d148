from app.kit.errors import NotFound, Unauthorized


class IncomingWebhookNotFound(NotFound, code="incoming_webhook_not_found"): ...


class PayloadNotFound(NotFound, code="payload_not_found"): ...


class BadSignature(Unauthorized):
    """The signature of a payload is missing or wrong."""
