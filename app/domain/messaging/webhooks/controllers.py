from litestar import Controller, delete, get, post, put
from litestar.params import JSONBody

from app.domain.messaging.deliveries import api as deliveries
from app.domain.messaging.deliveries.schemas import DeliveryView, FullDelivery
from app.domain.messaging.outbox.api import LogFilter, Status
from app.http.dependencies import Context, Id, Page, Principal, Services, Tx
from app.http.paging import Active, From, OfStatus, Sort, To, parse_time
from app.http.records import Record, lock_row
from app.kit.paging import Flat, Paged

from . import service
from .schemas import CreateWebhook, TestWebhook, UpdateWebhook, WebhookView, WebhookWithSecret

_WEBHOOK = Record(
    lock_row("webhooks", id="webhook_id"), "get_webhook", tagged=("secrets_updated_at",)
)


class WebhookController(Controller):
    path = "/api/v1/webhooks"
    tags = ["Webhooks"]

    @get(summary="List webhooks", needs="webhooks:read")
    async def list_webhooks(
        self, context: Context, page_in: Page, active: Active = None, sort: Sort = None
    ) -> Paged[WebhookView]:
        """Sort by url, created_at or updated_at; the newest first by default."""
        return await service.list_page(context, page_in, active=active, sort=sort)

    @post(summary="Create a webhook", needs="webhooks:write")
    async def create_webhook(
        self, context: Context, data: JSONBody[CreateWebhook]
    ) -> WebhookWithSecret:
        """The `secret` is in this answer only. Deliveries carry `X-Service-Signature:
        sha256=<hex>`, the HMAC-SHA256 keyed with it over `<X-Service-Timestamp>.<raw body>`, and
        the headers of Standard Webhooks, so that its libraries verify them as they are.
        """
        return await service.create(context, data)

    @get("/{webhook_id:str}", summary="Get a webhook", needs="webhooks:read")
    async def get_webhook(self, context: Context, webhook_id: Id) -> WebhookView:
        return await service.get(context, webhook_id)

    @put("/{webhook_id:str}", summary="Change a webhook", needs="webhooks:write", record=_WEBHOOK)
    async def update_webhook(
        self, context: Context, webhook_id: Id, data: JSONBody[UpdateWebhook]
    ) -> WebhookView:
        """Any subset of the fields. `headers` replaces all of them."""
        return await service.update(context, webhook_id, data)

    @delete("/{webhook_id:str}", summary="Delete a webhook", needs="webhooks:write")
    async def delete_webhook(self, tx: Tx, webhook_id: Id) -> None:
        """Cancels pending deliveries and deletes their log."""
        await service.delete(tx, webhook_id)

    @post(
        "/{webhook_id:str}/test",
        summary="Send a test event",
        stores=True,
        needs="webhooks:write",
        status_code=200,
        idempotent="long_running",
        cost="execute",
    )
    async def test_webhook(
        self,
        services: Services,
        principal: Principal,
        webhook_id: Id,
        data: JSONBody[TestWebhook | None] = None,
    ) -> DeliveryView:
        """The example of an event type goes to this endpoint alone, once, with the header
        `X-Service-Test: true`; the answer is the finished delivery. In the event log it is marked
        as a test.
        """
        event_type = (data or TestWebhook()).event_type
        return await service.send_test(services, principal, webhook_id, event_type)

    @post(
        "/{webhook_id:str}/rotate-secret",
        summary="Rotate the secret",
        record=_WEBHOOK,
        needs="webhooks:write",
        status_code=200,
    )
    async def rotate_webhook_secret(self, context: Context, webhook_id: Id) -> WebhookWithSecret:
        """The new secret signs at once. For 24 hours the old one does as well, in
        `X-Service-Signature-Previous` and as a second signature in `webhook-signature`.
        """
        return await service.rotate_secret(context, webhook_id)

    @get("/{webhook_id:str}/executions", summary="List deliveries", needs="webhooks:read")
    async def list_webhook_deliveries(
        self,
        tx: Tx,
        page_in: Page,
        webhook_id: Id,
        status: OfStatus[Status] = None,
        since: From = None,
        until: To = None,
    ) -> Flat[DeliveryView]:
        """The newest first. Beyond 5,000 rows `total` is an estimate, and `estimated` is true."""
        filters = LogFilter(status, parse_time("from", since), parse_time("to", until))
        return await service.list_deliveries(tx, webhook_id, filters, page_in)

    @get(
        "/{webhook_id:str}/executions/{delivery_id:str}",
        summary="Get a delivery",
        needs="webhooks:read",
    )
    async def get_webhook_delivery(
        self, tx: Tx, services: Services, webhook_id: Id, delivery_id: Id
    ) -> FullDelivery:
        """With the request and the response to each attempt."""
        return await service.get_delivery(tx, services, webhook_id, delivery_id)

    @post(
        "/{webhook_id:str}/executions/{delivery_id:str}/redeliver",
        summary="Send a delivery again",
        needs="webhooks:write",
        status_code=202,
    )
    async def redeliver_to_webhook(
        self, tx: Tx, services: Services, webhook_id: Id, delivery_id: Id
    ) -> DeliveryView:
        """Sends it at once, and by the retry schedule if that fails. The same record counts the
        attempts.
        """
        webhook = await service.find(tx, webhook_id)
        return await deliveries.redeliver(tx, services.settings, webhook, delivery_id)
