from typing import Any

from litestar import Controller, Response, delete, get, post, put
from litestar.params import JSONBody

from app.http.dependencies import Context, HttpRequest, Id, Page, Services, Tx
from app.http.paging import Active, Sort
from app.http.records import Record, lock_row
from app.kit.paging import Paged

from . import payloads, receiving, service
from .schemas import CreateIncoming, IncomingView, PayloadView, Received, UpdateIncoming

_WEBHOOK = Record(lock_row("incoming_webhooks", id="webhook_id"))


class IncomingWebhookController(Controller):
    path = "/api/v1/incoming-webhooks"
    tags = ["Incoming webhooks"]

    @get(summary="List incoming webhooks", needs="webhooks:read")
    async def list_incoming_webhooks(
        self, context: Context, page_in: Page, active: Active = None, sort: Sort = None
    ) -> Paged[IncomingView]:
        """Sort by name, slug, created_at or updated_at; the default is the newest first."""
        return await service.list_page(context, page_in, active=active, sort=sort)

    @post(summary="Create an incoming webhook", needs="webhooks:write")
    async def create_incoming_webhook(
        self, context: Context, data: JSONBody[CreateIncoming]
    ) -> IncomingView:
        """`url` is the public address. With `verification`, only payloads with a valid signature of
        its scheme are accepted; without it, all payloads are.
        """
        return await service.create(context, data)

    @get("/{webhook_id:str}", summary="Get an incoming webhook", needs="webhooks:read")
    async def get_incoming_webhook(self, context: Context, webhook_id: Id) -> IncomingView:
        return await service.get(context, webhook_id)

    @put(
        "/{webhook_id:str}",
        summary="Change an incoming webhook",
        needs="webhooks:write",
        record=_WEBHOOK,
    )
    async def update_incoming_webhook(
        self, context: Context, webhook_id: Id, data: JSONBody[UpdateIncoming]
    ) -> IncomingView:
        """Any subset of the fields. With `verification: null`, no signature is required."""
        return await service.update(context, webhook_id, data)

    @delete("/{webhook_id:str}", summary="Delete an incoming webhook", needs="webhooks:write")
    async def delete_incoming_webhook(self, tx: Tx, webhook_id: Id) -> None:
        """Deletes its log as well."""
        await service.delete(tx, webhook_id)

    @get("/{webhook_id:str}/events", summary="List received payloads", needs="webhooks:read")
    async def list_payloads(self, tx: Tx, page_in: Page, webhook_id: Id) -> Paged[PayloadView]:
        """The newest first, as they were received, without headers that contain secrets."""
        return await payloads.list_page(tx, webhook_id, page_in)

    @get(
        "/{webhook_id:str}/events/{event_id:str}",
        summary="Get a received payload",
        needs="webhooks:read",
    )
    async def get_payload(self, tx: Tx, webhook_id: Id, event_id: Id) -> PayloadView:
        """With the whole payload, of any size."""
        return await payloads.get(tx, webhook_id, event_id)

    @post(
        "/{webhook_id:str}/events/{event_id:str}/replay",
        summary="Replay a payload",
        stores=True,
        needs="webhooks:write",
        status_code=202,
    )
    async def replay_payload(
        self, tx: Tx, services: Services, webhook_id: Id, event_id: Id
    ) -> Received:
        """Stores the payload and emits its event once more, as if it had been received again; also
        while the webhook is not active.
        """
        replay_id = await receiving.replay(tx, services, webhook_id, event_id)
        return Received(event_id=replay_id)


@post(
    "/webhooks/in/{slug:str}",
    summary="Receive a payload",
    tags=["Incoming webhooks"],
    public=True,
    status_code=202,
    idempotent="long_running",
    errors=(401,),
    cost="write",
    tenant_pays=True,
    request_max_body_size=receiving.MAX_BYTES,
)
async def receive_payload(request: HttpRequest, slug: Id) -> Response[Received]:
    """The body is any JSON, or a form. The payload is stored before the response is sent;
    `event_id` is its id in the webhook's log and in the event log. A payload without a valid
    signature gets 401 and is not stored. Slack's `url_verification` request is answered with 200
    and its `challenge`.
    """
    event_id, content = await receiving.receive(request, slug)
    if not event_id:
        challenge: Any = {"challenge": content["challenge"]}
        return Response(challenge, status_code=200)
    return Response(Received(event_id=event_id), status_code=202)
