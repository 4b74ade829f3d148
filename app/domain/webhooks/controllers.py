from typing import Annotated

from litestar import Controller, delete, get, post, put
from litestar.params import JSONBody, QueryParameter

from app.domain.webhooks import deliveries, service
from app.domain.webhooks.deliveries import Filter
from app.domain.webhooks.schemas import (
    CreateWebhook,
    DeliveryView,
    FullDelivery,
    Status,
    TestWebhook,
    UpdateWebhook,
    WebhookView,
    WebhookWithSecret,
)
from app.domain.webhooks.service import Desk
from app.http.given import HttpRequest, Id, Page, Tx
from app.http.paging import MOMENT, Flat, Paged, Sort, moment
from app.parts import parts_of
from app.security.principal import principal_of
from db.session import Tx as _Tx

Active = Annotated[bool | None, QueryParameter(description="Only those that are, or are not")]
OfStatus = Annotated[Status | None, QueryParameter(description="Only these")]
From = Annotated[str | None, QueryParameter(name="from", schema_extra=MOMENT)]
To = Annotated[str | None, QueryParameter(name="to", schema_extra=MOMENT)]


def desk_of(request: HttpRequest, tx: _Tx) -> Desk:
    parts = parts_of(request)
    return Desk(tx, parts.keyring, parts.egress.guard, principal_of(request))


def wanted(status: Status | None, since: str | None, until: str | None) -> Filter:
    return Filter(status, moment("from", since), moment("to", until))


class WebhookController(Controller):
    path = "/api/v1/webhooks"
    tags = ["Webhooks"]  # noqa: RUF012  # litestar's own type

    @get(summary="List webhooks", needs="webhooks:read")
    async def list_webhooks(
        self,
        request: HttpRequest,
        tx: Tx,
        page_in: Page,
        active: Active = None,
        sort: Sort = None,
    ) -> Paged[WebhookView]:
        """Sort by url, created_at or updated_at; the newest first unless told otherwise."""
        return await service.page_of(desk_of(request, tx), page_in, active=active, sort=sort)

    @post(summary="Create a webhook", needs="webhooks:write")
    async def create_webhook(
        self, request: HttpRequest, tx: Tx, data: JSONBody[CreateWebhook]
    ) -> WebhookWithSecret:
        """The `secret` is in this answer only. Deliveries carry `X-Service-Signature:
        sha256=<hex>`, the HMAC-SHA256 keyed with it over `<X-Service-Timestamp>.<raw body>`, and
        the headers of Standard Webhooks, so that its libraries verify them as they are.
        """
        return await service.create(desk_of(request, tx), data)

    @get("/{webhook_id:str}", summary="Get a webhook", needs="webhooks:read")
    async def get_webhook(self, request: HttpRequest, tx: Tx, webhook_id: Id) -> WebhookView:
        return await service.get(desk_of(request, tx), webhook_id)

    @put("/{webhook_id:str}", summary="Change a webhook", needs="webhooks:write")
    async def update_webhook(
        self, request: HttpRequest, tx: Tx, webhook_id: Id, data: JSONBody[UpdateWebhook]
    ) -> WebhookView:
        """Any subset of the fields. `headers` replaces all of them."""
        return await service.update(desk_of(request, tx), webhook_id, data)

    @delete("/{webhook_id:str}", summary="Delete a webhook", needs="webhooks:write")
    async def delete_webhook(self, tx: Tx, webhook_id: Id) -> None:
        """What is still to be delivered is not; its records go along."""
        await service.delete(tx, webhook_id)

    @post(
        "/{webhook_id:str}/test",
        summary="Send a test event",
        needs="webhooks:write",
        status_code=200,
        idempotent="apart",
        cost="execute",
    )
    async def test_webhook(
        self, request: HttpRequest, webhook_id: Id, data: JSONBody[TestWebhook | None] = None
    ) -> DeliveryView:
        """The example of an event type goes to this endpoint alone, once, with the header
        `X-Service-Test: true`; the answer is the finished delivery. In the event log it is marked
        as a test.
        """
        parts, scope = parts_of(request), principal_of(request).scope
        wanted = data or TestWebhook()
        return await deliveries.test(parts, scope, webhook_id, wanted.event_type)

    @post(
        "/{webhook_id:str}/rotate-secret",
        summary="Rotate the secret",
        needs="webhooks:write",
        status_code=200,
    )
    async def rotate_secret(
        self, request: HttpRequest, tx: Tx, webhook_id: Id
    ) -> WebhookWithSecret:
        """The new secret signs at once. For 24 hours the old one does as well, in
        `X-Service-Signature-Previous` and as a second signature in `webhook-signature`.
        """
        return await service.rotate(desk_of(request, tx), webhook_id)

    @get("/{webhook_id:str}/executions", summary="List deliveries", needs="webhooks:read")
    async def list_deliveries(
        self,
        tx: Tx,
        page_in: Page,
        webhook_id: Id,
        status: OfStatus = None,
        since: From = None,
        until: To = None,
    ) -> Flat[DeliveryView]:
        """The newest first. Beyond 5,000 the `total` is an estimate, and `estimated` says so."""
        webhook = await service.find(tx, webhook_id)
        return await deliveries.page_of(tx, webhook, wanted(status, since, until), page_in)

    @get(
        "/{webhook_id:str}/executions/{delivery_id:str}",
        summary="Get a delivery",
        needs="webhooks:read",
    )
    async def get_delivery(
        self, request: HttpRequest, tx: Tx, webhook_id: Id, delivery_id: Id
    ) -> FullDelivery:
        """With what is sent and what each attempt was answered."""
        webhook = await service.find(tx, webhook_id)
        return await deliveries.get(tx, parts_of(request).keyring, webhook, delivery_id)

    @post(
        "/{webhook_id:str}/executions/{delivery_id:str}/redeliver",
        summary="Deliver once more",
        needs="webhooks:write",
        status_code=202,
    )
    async def redeliver(
        self, request: HttpRequest, tx: Tx, webhook_id: Id, delivery_id: Id
    ) -> DeliveryView:
        """At once, and by the retry schedule if that fails; the same record counts on."""
        webhook = await service.find(tx, webhook_id)
        settings = parts_of(request).settings
        return await deliveries.redeliver(tx, settings, webhook, delivery_id)
