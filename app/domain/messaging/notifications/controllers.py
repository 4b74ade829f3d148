from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

import msgspec
from litestar import Controller, delete, get, post, put
from litestar.params import HeaderParameter, JSONBody, QueryParameter

from app.domain.messaging.outbox.api import LogFilter, Status
from app.http.dependencies import Context, Id, Page, Principal, Services, Tx
from app.http.paging import Active, From, OfStatus, To, parse_time
from app.http.records import Record, lock_row
from app.http.sse import MEDIA_TYPE, EventStream
from app.kit import sse
from app.kit.paging import Flat
from app.security.principal import Principal as _Principal
from app.services import Services as _Services

from . import center, channel_figures, channel_tests, channels, feed
from .center_queries import NotificationFilter
from .channel_schemas import (
    AllStats,
    ChannelList,
    ChannelTest,
    ChannelView,
    CreateChannel,
    LogEntryView,
    Period,
    ProviderList,
    RevealedChannel,
    Stats,
    StatsBreakdown,
    UpdateChannel,
)
from .feed import Feed
from .providers.protocol import ChannelType
from .schemas import (
    MarkedRead,
    NotificationPage,
    NotificationView,
    Preferences,
    SendNotification,
    SentNotification,
    TestNotification,
    UnreadCount,
    UpdatePreferences,
)
from .types import TypeName

_CHANNEL = Record(lock_row("notification_channels", id="channel_id"))
_PREFERENCES = Record(center.lock_preferences)


class ChannelController(Controller):
    path = "/api/v1/notification-channels"
    tags = ["Notification channels"]

    @get(summary="List channels", needs="notifications:read")
    async def list_channels(
        self,
        tx: Tx,
        channel_type: Annotated[
            ChannelType | None,
            QueryParameter(name="type", description="Only channels of this type"),
        ] = None,
        active: Active = None,
    ) -> ChannelList:
        """The oldest first, which is the order in which channels of a type are tried."""
        return await channels.list_all(tx, channel_type, active=active)

    @post(summary="Create a channel", needs="notifications:write")
    async def create_channel(self, context: Context, data: JSONBody[CreateChannel]) -> ChannelView:
        """The keys of `config` depend on the provider. Its secrets are stored encrypted."""
        return await channels.create(context, data)

    @get("/providers", summary="List providers", needs="notifications:read")
    async def list_channel_providers(self) -> ProviderList:
        return channels.list_providers()

    @get("/active/{channel_type:str}", summary="List active channels", needs="notifications:read")
    async def list_active_channels(self, tx: Tx, channel_type: Id) -> ChannelList:
        """In the order in which they are tried."""
        return await channels.list_active(tx, channel_type)

    @get("/stats", summary="Get the statistics of all channels", needs="notifications:read")
    async def get_all_channel_stats(self, tx: Tx) -> AllStats:
        return await channel_figures.get_all_stats(tx)

    @get("/stats/breakdown", summary="Get statistics by type and day", needs="notifications:read")
    async def get_channel_breakdown(
        self,
        tx: Tx,
        period: Annotated[Period, QueryParameter(description="How far back")] = "30d",
    ) -> StatsBreakdown:
        """By type of channel, by provider, and by day in UTC."""
        return await channel_figures.get_breakdown(tx, period)

    @get("/{channel_id:str}", summary="Get a channel", needs="notifications:read")
    async def get_channel(self, context: Context, channel_id: Id) -> ChannelView:
        return await channels.get(context, channel_id)

    @get("/{channel_id:str}/reveal", summary="Reveal the config", needs="notifications:reveal")
    async def reveal_channel(
        self, services: Services, principal: Principal, channel_id: Id
    ) -> RevealedChannel:
        """With its secrets. An event records who read them."""
        return await channels.reveal(services, principal, channel_id)

    @put(
        "/{channel_id:str}",
        summary="Change a channel",
        needs="notifications:write",
        record=_CHANNEL,
    )
    async def update_channel(
        self, context: Context, channel_id: Id, data: JSONBody[UpdateChannel]
    ) -> ChannelView:
        """Any subset of the fields. `config` replaces all of its keys, except that a secret sent as
        ******** stays as it is, unless the channel would send it to another host.
        """
        return await channels.update(context, channel_id, data)

    @delete("/{channel_id:str}", summary="Delete a channel", needs="notifications:write")
    async def delete_channel(self, context: Context, channel_id: Id) -> None:
        """With its log. Pending messages to users go through the next channel of the type."""
        await channels.delete(context, channel_id)

    @post(
        "/{channel_id:str}/test",
        summary="Test a channel",
        needs="notifications:write",
        status_code=200,
        idempotent="long_running",
        cost="execute",
    )
    async def test_channel(
        self, services: Services, principal: Principal, channel_id: Id
    ) -> ChannelTest:
        """Sends one message for real and waits for it: to the first recipient in `to`, or to your
        own address. `success` says whether the provider accepted it.
        """
        return await channel_tests.run(services, principal, channel_id)

    @get("/{channel_id:str}/logs", summary="List attempts", needs="notifications:read")
    async def list_channel_log(
        self,
        tx: Tx,
        page_in: Page,
        channel_id: Id,
        status: OfStatus[Status] = None,
        since: From = None,
        until: To = None,
    ) -> Flat[LogEntryView]:
        """One row for each attempt, the newest first. A pending one is made as soon as its turn
        comes.
        """
        filters = LogFilter(status, parse_time("from", since), parse_time("to", until))
        return await channel_figures.list_log(tx, channel_id, filters, page_in)

    @get(
        "/{channel_id:str}/stats", summary="Get a channel's statistics", needs="notifications:read"
    )
    async def get_channel_stats(self, tx: Tx, channel_id: Id) -> Stats:
        return await channel_figures.get_stats(tx, channel_id)


class NotificationController(Controller):
    path = "/api/v1/notifications"
    tags = ["Notifications"]

    @get(summary="List your notifications", signed_in=True)
    async def list_notifications(
        self,
        tx: Tx,
        principal: Principal,
        page_in: Page,
        read: Annotated[
            bool | None, QueryParameter(description="Only read ones, or only unread ones")
        ] = None,
        notification_type: Annotated[
            TypeName | None,
            QueryParameter(name="type", description="Only notifications of this type"),
        ] = None,
    ) -> NotificationPage:
        """The newest first."""
        filters = NotificationFilter(read, notification_type)
        return await center.list_page(tx, principal.user_id, filters, page_in)

    @post(summary="Send a notification", needs="notifications:write", status_code=202)
    async def send_notification(
        self, context: Context, data: JSONBody[SendNotification]
    ) -> SentNotification:
        """To users, or to all users with a role. A worker forwards it as their preferences say."""
        return await center.send(context, data)

    @get("/unread/count", summary="Count your unread notifications", signed_in=True)
    async def count_unread_notifications(self, tx: Tx, principal: Principal) -> UnreadCount:
        return await center.count_unread(tx, principal.user_id)

    @get(
        "/stream",
        summary="Stream your notifications",
        signed_in=True,
        media_type=MEDIA_TYPE,
        events={"notification": NotificationView},
    )
    async def stream_notifications(
        self,
        services: Services,
        principal: Principal,
        last_event_id: Annotated[
            str | None,
            HeaderParameter(name="Last-Event-ID", description="Continues after this one"),
        ] = None,
    ) -> EventStream:
        """Server-sent events: `notification` with a notification as its data and the id of the
        event, from now on, or after `Last-Event-ID`; then some may come again, with the same id.
        The stream ends with the session, and after an hour: connect again then.
        """
        services.get(Feed).check_streams(principal.user_id)
        return EventStream(_encode(services, principal, last_event_id), is_endless=True)

    @get("/preferences", summary="Get your preferences", own=True)
    async def get_notification_preferences(self, tx: Tx, principal: Principal) -> Preferences:
        return await center.get_preferences(tx, principal.tenant_id, principal.user_id)

    @put("/preferences", summary="Change your preferences", own=True, record=_PREFERENCES)
    async def update_notification_preferences(
        self, tx: Tx, principal: Principal, data: JSONBody[UpdatePreferences]
    ) -> Preferences:
        ids = (principal.tenant_id, principal.user_id)
        return await center.update_preferences(tx, *ids, data)

    @post("/read-all", summary="Mark all as read", signed_in=True, status_code=200)
    async def mark_all_notifications_read(self, tx: Tx, principal: Principal) -> MarkedRead:
        return await center.mark_all_read(tx, principal.user_id)

    @post(
        "/test",
        summary="Send yourself a test",
        signed_in=True,
        status_code=200,
        idempotent="long_running",
        cost="execute",
        errors=(502,),
    )
    async def send_test_notification(
        self, services: Services, principal: Principal, data: JSONBody[TestNotification]
    ) -> ChannelTest:
        """Through the channel that your notifications of this type take, and waits for it. In a
        team chat it is visible to everybody there.
        """
        return await channel_tests.run_for_caller(services, principal, data)

    @post("/{notification_id:str}/read", summary="Mark as read", signed_in=True, status_code=200)
    async def mark_notification_read(
        self, tx: Tx, principal: Principal, notification_id: Id
    ) -> NotificationView:
        return await center.mark_read(tx, principal.user_id, notification_id)


async def _encode(
    services: _Services, principal: _Principal, last_id: str | None
) -> AsyncGenerator[bytes, None]:
    async with aclosing(feed.stream(services, principal, last_id)) as batches:
        async for batch in batches:
            if not batch:
                yield sse.comment("connected")
            for item in batch:
                yield sse.event("notification", msgspec.json.encode(item), item.id)
