from typing import Annotated

from litestar import Controller, delete, get, post, put
from litestar.params import JSONBody, QueryParameter

from app.domain.subscriptions import service
from app.domain.subscriptions.actions import ActionType
from app.domain.subscriptions.schemas import (
    ChangedSubscription,
    CreateSubscription,
    SubscriptionView,
    Switched,
    TestEmitted,
    TestEvent,
    UpdateSubscription,
)
from app.domain.webhooks import deliveries
from app.domain.webhooks.controllers import Active, From, OfStatus, To, desk_of, wanted
from app.domain.webhooks.schemas import DeliveryView, FullDelivery
from app.http.answers import filled
from app.http.given import HttpRequest, Id, Page, Principal, Tx
from app.http.paging import Flat, Paged, Sort
from app.parts import parts_of

OfType = Annotated[str | None, QueryParameter(max_length=100, description="Only these")]
OfAction = Annotated[ActionType | None, QueryParameter(description="Only these")]


class SubscriptionController(Controller):
    path = "/api/v1/event-subscriptions"
    tags = ["Events"]  # noqa: RUF012  # litestar's own type

    @get(summary="List subscriptions", needs="events:read")
    async def list_subscriptions(
        self,
        tx: Tx,
        page_in: Page,
        event_type: OfType = None,
        action_type: OfAction = None,
        active: Active = None,
        sort: Sort = None,
    ) -> Paged[SubscriptionView]:
        """Sort by event_type, action_type, trigger_count, last_triggered_at, created_at or
        updated_at; the newest first unless told otherwise.
        """
        return await service.page_of(
            tx,
            page_in,
            event_type=event_type,
            action_type=action_type,
            active=active,
            sort=sort,
        )

    @post(summary="Create a subscription", needs="events:write")
    async def create_subscription(
        self, request: HttpRequest, tx: Tx, data: JSONBody[CreateSubscription]
    ) -> ChangedSubscription:
        """Deliveries to a `url` are signed like those of a webhook; their `secret` is in this
        answer only.
        """
        return await service.create(desk_of(request, tx), data)

    @get("/{subscription_id:str}", summary="Get a subscription", needs="events:read")
    async def get_subscription(self, tx: Tx, subscription_id: Id) -> SubscriptionView:
        return filled(SubscriptionView, await service.find(tx, subscription_id))

    @put("/{subscription_id:str}", summary="Change a subscription", needs="events:write")
    async def update_subscription(
        self,
        request: HttpRequest,
        tx: Tx,
        subscription_id: Id,
        data: JSONBody[UpdateSubscription],
    ) -> ChangedSubscription:
        """Any subset of the fields; `action_config` and `filters` are replaced as a whole."""
        return await service.update(desk_of(request, tx), subscription_id, data)

    @delete("/{subscription_id:str}", summary="Delete a subscription", needs="events:write")
    async def delete_subscription(self, tx: Tx, subscription_id: Id) -> None:
        await service.delete(tx, subscription_id)

    @post(
        "/{subscription_id:str}/rotate-secret",
        summary="Rotate the secret",
        needs="events:write",
        status_code=200,
    )
    async def rotate_secret(
        self, request: HttpRequest, tx: Tx, subscription_id: Id
    ) -> ChangedSubscription:
        """Of a subscription that delivers to an address of its own. For 24 hours the old secret
        signs as well.
        """
        return await service.rotate(desk_of(request, tx), subscription_id)

    @get("/{subscription_id:str}/executions", summary="List deliveries", needs="events:read")
    async def list_deliveries(
        self,
        tx: Tx,
        page_in: Page,
        subscription_id: Id,
        status: OfStatus = None,
        since: From = None,
        until: To = None,
    ) -> Flat[DeliveryView]:
        """Of a subscription whose action delivers to an address of its own."""
        endpoint = await service.endpoint_of(tx, subscription_id)
        return await deliveries.page_of(tx, endpoint, wanted(status, since, until), page_in)

    @get(
        "/{subscription_id:str}/executions/{delivery_id:str}",
        summary="Get a delivery",
        needs="events:read",
    )
    async def get_delivery(
        self, request: HttpRequest, tx: Tx, subscription_id: Id, delivery_id: Id
    ) -> FullDelivery:
        endpoint = await service.endpoint_of(tx, subscription_id)
        return await deliveries.get(tx, parts_of(request).keyring, endpoint, delivery_id)

    @post(
        "/{subscription_id:str}/executions/{delivery_id:str}/redeliver",
        summary="Deliver once more",
        needs="events:write",
        status_code=202,
    )
    async def redeliver(
        self, request: HttpRequest, tx: Tx, subscription_id: Id, delivery_id: Id
    ) -> DeliveryView:
        endpoint = await service.endpoint_of(tx, subscription_id)
        settings = parts_of(request).settings
        return await deliveries.redeliver(tx, settings, endpoint, delivery_id)


class WorkflowSubscriptionController(Controller):
    path = "/api/v1/workflows/{workflow_id:str}/subscriptions"
    tags = ["Events"]  # noqa: RUF012
    opt = {"needs": "events:write"}  # noqa: RUF012

    @post("/activate", summary="Activate a workflow's subscriptions", status_code=200)
    async def activate(self, tx: Tx, workflow_id: Id) -> Switched:
        """`updated` counts those that were not active before."""
        return await service.switch(tx, workflow_id, active=True)

    @post("/deactivate", summary="Deactivate a workflow's subscriptions", status_code=200)
    async def deactivate(self, tx: Tx, workflow_id: Id) -> Switched:
        """`updated` counts those that were active before."""
        return await service.switch(tx, workflow_id, active=False)


class TestEventController(Controller):
    path = "/api/v1/events/test"
    tags = ["Events"]  # noqa: RUF012

    @post(summary="Emit a test event", needs="events:write", status_code=202)
    async def emit_test_event(
        self, tx: Tx, principal: Principal, data: JSONBody[TestEvent]
    ) -> TestEmitted:
        """Triggers every subscription that it matches, and goes to the webhooks for its type. In
        the event log it is marked as a test.
        """
        return await service.test(tx, principal.home, data)
