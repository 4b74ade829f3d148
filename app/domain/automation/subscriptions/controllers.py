from typing import Annotated

from litestar import Controller, delete, get, post, put
from litestar.params import JSONBody, QueryParameter

from app.domain.messaging.deliveries import api as deliveries
from app.domain.messaging.deliveries.schemas import DeliveryView, FullDelivery
from app.domain.messaging.outbox.api import LogFilter, Status
from app.http import idempotency
from app.http.dependencies import Context, HttpRequest, Id, Page, Services, Tx
from app.http.paging import Active, From, OfStatus, Sort, To, parse_time
from app.http.records import Record, lock_row
from app.kit.paging import Flat, Paged

from . import service
from .actions import ActionType
from .queries import SubscriptionFilter
from .schemas import (
    ChangedSubscription,
    CreateSubscription,
    SubscriptionView,
    Switched,
    TestEmitted,
    TestEvent,
    UpdateSubscription,
)

OfType = Annotated[
    str | None, QueryParameter(max_length=100, description="Only subscriptions to this event type")
]
OfAction = Annotated[
    ActionType | None, QueryParameter(description="Only subscriptions with this action")
]

_SUBSCRIPTION = Record(lock_row("event_subscriptions", id="subscription_id"), "get_subscription")


class SubscriptionController(Controller):
    path = "/api/v1/event-subscriptions"
    tags = ["Subscriptions"]

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
        updated_at; the newest first by default.
        """
        filters = SubscriptionFilter(event_type, action_type, active, sort)
        return await service.list_page(tx, page_in, filters)

    @post(summary="Create a subscription", needs="events:write", idempotent="long_running")
    async def create_subscription(
        self, request: HttpRequest, context: Context, data: JSONBody[CreateSubscription]
    ) -> ChangedSubscription:
        """Deliveries to a `url` are signed like those of a webhook; their `secret` is in this
        answer only.
        """
        created = await service.create(context, data)
        await idempotency.store_answer(request, context.tx, created)
        return created

    @get("/{subscription_id:str}", summary="Get a subscription", needs="events:read")
    async def get_subscription(self, tx: Tx, subscription_id: Id) -> SubscriptionView:
        return await service.get(tx, subscription_id)

    @put(
        "/{subscription_id:str}",
        summary="Change a subscription",
        needs="events:write",
        record=_SUBSCRIPTION,
    )
    async def update_subscription(
        self,
        context: Context,
        subscription_id: Id,
        data: JSONBody[UpdateSubscription],
    ) -> ChangedSubscription:
        """Any subset of the fields; `action_config` and `filters` are replaced as a whole."""
        return await service.update(context, subscription_id, data)

    @delete("/{subscription_id:str}", summary="Delete a subscription", needs="events:write")
    async def delete_subscription(self, tx: Tx, subscription_id: Id) -> None:
        await service.delete(tx, subscription_id)

    @post(
        "/{subscription_id:str}/rotate-secret",
        summary="Rotate the secret",
        record=_SUBSCRIPTION,
        needs="events:write",
        status_code=200,
    )
    async def rotate_subscription_secret(
        self, context: Context, subscription_id: Id
    ) -> ChangedSubscription:
        """Of a subscription that delivers to an address of its own. For 24 hours the old secret
        signs as well.
        """
        return await service.rotate_secret(context, subscription_id)

    @get("/{subscription_id:str}/executions", summary="List deliveries", needs="events:read")
    async def list_subscription_deliveries(
        self,
        tx: Tx,
        page_in: Page,
        subscription_id: Id,
        status: OfStatus[Status] = None,
        since: From = None,
        until: To = None,
    ) -> Flat[DeliveryView]:
        """Of a subscription whose action delivers to an address of its own."""
        endpoint = await service.find_endpoint(tx, subscription_id)
        filters = LogFilter(status, parse_time("from", since), parse_time("to", until))
        return await deliveries.list_page(tx, endpoint, filters, page_in)

    @get(
        "/{subscription_id:str}/executions/{delivery_id:str}",
        summary="Get a delivery",
        needs="events:read",
    )
    async def get_subscription_delivery(
        self, tx: Tx, services: Services, subscription_id: Id, delivery_id: Id
    ) -> FullDelivery:
        endpoint = await service.find_endpoint(tx, subscription_id)
        delivery = await deliveries.find(tx, services.keyring, endpoint, delivery_id)
        if delivery is None:
            raise deliveries.not_found(delivery_id)
        return delivery

    @post(
        "/{subscription_id:str}/executions/{delivery_id:str}/redeliver",
        summary="Send a delivery again",
        needs="events:write",
        status_code=202,
    )
    async def redeliver_to_subscription(
        self, tx: Tx, services: Services, subscription_id: Id, delivery_id: Id
    ) -> DeliveryView:
        endpoint = await service.load_endpoint(tx, subscription_id)
        return await deliveries.redeliver(tx, services.settings, endpoint, delivery_id)


class WorkflowSubscriptionController(Controller):
    path = "/api/v1/workflows/{workflow_id:str}/subscriptions"
    tags = ["Subscriptions"]
    opt = {"needs": "events:write"}

    @post("/activate", summary="Activate a workflow's subscriptions", status_code=200)
    async def activate_subscriptions(self, tx: Tx, workflow_id: Id) -> Switched:
        """`updated` counts those that were not active before."""
        return await service.switch(tx, workflow_id, active=True)

    @post("/deactivate", summary="Deactivate a workflow's subscriptions", status_code=200)
    async def deactivate_subscriptions(self, tx: Tx, workflow_id: Id) -> Switched:
        """`updated` counts those that were active before."""
        return await service.switch(tx, workflow_id, active=False)


class TestEventController(Controller):
    path = "/api/v1/events/test"
    tags = ["Subscriptions"]

    @post(summary="Emit a test event", stores=True, needs="events:write", status_code=202)
    async def emit_test_event(self, context: Context, data: JSONBody[TestEvent]) -> TestEmitted:
        """Triggers every subscription that it matches, and goes to the webhooks for its type. In
        the event log it is marked as a test.
        """
        return await service.emit_test(context, data)
