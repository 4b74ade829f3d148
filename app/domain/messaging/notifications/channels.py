"""Channels: creates, shows, changes, deletes and reveals them."""

from typing import Any, get_args

import msgspec

from app.context import RequestContext
from app.crypto.keyring import CannotOpen, Keyring
from app.domain.identity.accounts import api as accounts
from app.domain.platform.events import api as events
from app.kit import clock, validation
from app.kit.errors import Conflict, Invalid
from app.kit.ids import new_id
from app.kit.views import build_view
from app.security.principal import Principal
from app.services import Services
from db.fast import Row
from db.models import NotificationChannel
from db.session import Tx

from . import channel_queries as queries
from . import configs, sealed_configs
from .channel_schemas import (
    ChannelList,
    ChannelView,
    ConfigKey,
    CreateChannel,
    ProviderList,
    ProviderView,
    RevealedChannel,
    UpdateChannel,
)
from .errors import ChannelNotFound, ChannelTypeNotFound, InvalidConfig, UnusableConfig
from .events import ChannelCreated, ChannelDeleted, ChannelRevealed, ChannelUpdated
from .providers.protocol import ChannelType, Provider, ProviderConfig
from .providers.registry import PROVIDERS

_MAX_LISTED = 1000


def list_providers() -> ProviderList:
    return ProviderList(
        [
            ProviderView(provider.id, provider.channel_type, provider.name, _build_schema(provider))
            for provider in PROVIDERS.values()
        ]
    )


def _build_schema(provider: Provider) -> dict[str, ConfigKey]:
    return msgspec.convert(configs.build_schema(provider), dict[str, ConfigKey])


async def list_all(tx: Tx, type_: ChannelType | None, *, active: bool | None) -> ChannelList:
    channels = await queries.list_all(tx, type_, active=active, limit=_MAX_LISTED)
    return ChannelList(channels, len(channels))


async def list_active(tx: Tx, type_: str) -> ChannelList:
    types: tuple[ChannelType, ...] = get_args(ChannelType)
    for known in types:
        if known == type_:
            return await list_all(tx, known, active=True)
    raise ChannelTypeNotFound(
        f"There is no channel type {type_[:64]}; there are {', '.join(types)}"
    )


async def find(tx: Tx, channel_id: str, *, for_update: bool = False) -> NotificationChannel:
    channel = await queries.find(tx, channel_id, for_update=for_update)
    if channel is None:
        raise not_found(channel_id)
    return channel


async def find_row(tx: Tx, channel_id: str) -> Row:
    row = await queries.find_row(tx, channel_id)
    if row is None:
        raise not_found(channel_id)
    return row


def not_found(channel_id: str) -> ChannelNotFound:
    return ChannelNotFound(f"There is no notification channel {channel_id[:64]}")


async def require(tx: Tx, channel_id: str) -> None:
    """Raises ChannelNotFound unless the channel exists."""
    if not await queries.exists(tx, channel_id):
        raise not_found(channel_id)


async def get(context: RequestContext, channel_id: str) -> ChannelView:
    row = await find_row(context.tx, channel_id)
    ids = (row["tenant_id"], row["id"], row["provider"])
    return queries.build_view(row, config=_mask(context.keyring, *ids, row["config"]))


async def create(context: RequestContext, data: CreateChannel) -> ChannelView:
    tx, tenant_id = context.tx, context.principal.home
    provider = _find_provider(data.type, data.provider)
    await queries.check_quota(tx, tenant_id)
    values = configs.unmask(provider, data.config, {})
    config = configs.validate(provider, values, context.guard)
    await _check_users(tx, tenant_id, provider, config)
    channel_id = new_id("nch")
    channel = NotificationChannel(
        id=channel_id,
        tenant_id=tenant_id,
        name=data.name,
        type=data.type,
        provider=provider.id,
        config=sealed_configs.seal_config(context.keyring, tenant_id, channel_id, values),
        active=data.active,
        rate_limit_per_minute=data.rate_limit_per_minute,
        created_by=context.principal.user_id,
    )
    session = await tx.session()
    session.add(channel)
    await session.flush()
    await events.emit(tx, ChannelCreated(*_describe(channel)), tenant_id=tenant_id)
    return _view(context, channel)


async def _check_users(tx: Tx, tenant_id: str, provider: Provider, config: ProviderConfig) -> None:
    """The recipients of the notification center are users of the tenant."""
    if provider.channel_type == "in_app":
        unknown = await accounts.find_unknown_ids(tx, tenant_id, config.to)
        InvalidConfig.check(("config.to", f"there is no user {user_id}") for user_id in unknown)


def _find_provider(type_: ChannelType, provider_id: str | None) -> Provider:
    """The type in_app has only one provider, which may be left out."""
    names = [item.id for item in PROVIDERS.values() if item.channel_type == type_]
    if (provider_id is None and len(names) > 1) or provider_id == "":
        raise Invalid.field("provider", f"is required; for {type_} there are {', '.join(names)}")
    provider_id = provider_id or names[0]
    if provider_id not in names:
        raise Invalid.field("provider", f"must be one of {', '.join(names)} for {type_}")
    return PROVIDERS[provider_id]


async def update(context: RequestContext, channel_id: str, data: UpdateChannel) -> ChannelView:
    channel = await find(context.tx, channel_id, for_update=True)
    values = validation.set_fields(data)
    for name in ("type", "provider"):
        if values.pop(name, None) not in {None, getattr(channel, name)}:
            raise Invalid.field(name, "cannot be changed; create another channel instead")
    also_changed = []
    if "config" in values and await _change_config(context, channel, values.pop("config")):
        also_changed.append("config")
    await events.save_changes(
        context.tx,
        channel,
        values,
        lambda names: ChannelUpdated(*_describe(channel), names),
        also_changed=also_changed,
    )
    return _view(context, channel)


async def _change_config(
    context: RequestContext, channel: NotificationChannel, new_values: dict[str, Any]
) -> bool:
    """Seals a new config. Returns True when it differs from the stored one."""
    provider, ids = PROVIDERS[channel.provider], (channel.tenant_id, channel.id)
    try:
        stored_config = sealed_configs.open_config(context.keyring, *ids, provider, channel.config)
        stored_values = sealed_configs.open_values(context.keyring, *ids, channel.config)
    except UnusableConfig:
        # Only a config with all its secrets helps.
        stored_config, stored_values = None, {}
    unmasked = configs.unmask(provider, new_values, stored_values)
    config = configs.validate(provider, unmasked, context.guard)
    await _check_users(context.tx, channel.tenant_id, provider, config)
    if stored_config is not None:
        configs.check_move(provider, new_values, config, stored_config)
        if unmasked == stored_values:
            return False
    channel.config = sealed_configs.seal_config(context.keyring, *ids, unmasked)
    return True


async def delete(context: RequestContext, channel_id: str) -> None:
    """The channel is no longer visible, and its config is gone. Its row stays until its pending
    deliveries went through another channel when their turn came.
    """
    tx = context.tx
    channel = await find(tx, channel_id, for_update=True)
    channel.active, channel.deleted_at = False, clock.now()
    channel.config = sealed_configs.seal_config(context.keyring, channel.tenant_id, channel.id, {})
    await (await tx.session()).flush()
    await events.emit(tx, ChannelDeleted(*_describe(channel)), tenant_id=channel.tenant_id)


async def reveal(services: Services, principal: Principal, channel_id: str) -> RevealedChannel:
    """The event is committed before the secrets are returned."""
    async with services.db.tx(principal.scope) as tx:
        channel = await find(tx, channel_id)
        try:
            config = sealed_configs.open_values(
                services.keyring, channel.tenant_id, channel.id, channel.config
            )
        except CannotOpen:
            raise Conflict(
                "This config cannot be decrypted with this instance's keys; set it again"
            ) from None
        revealed = ChannelRevealed(*_describe(channel), principal.user_id)
        await events.emit(tx, revealed, tenant_id=channel.tenant_id)
        return build_view(RevealedChannel, channel, config=config)


def _mask(
    keyring: Keyring, tenant_id: str, channel_id: str, provider_id: str, sealed: bytes
) -> dict[str, Any]:
    """Returns the config as the API shows it; nothing where the root key is lost."""
    try:
        values = sealed_configs.open_values(keyring, tenant_id, channel_id, sealed)
    except CannotOpen:
        return {}
    return configs.mask(PROVIDERS[provider_id], values)


def _view(context: RequestContext, channel: NotificationChannel) -> ChannelView:
    ids = (channel.tenant_id, channel.id, channel.provider)
    return build_view(ChannelView, channel, config=_mask(context.keyring, *ids, channel.config))


def _describe(channel: NotificationChannel) -> tuple[str, str, str, str]:
    return channel.id, channel.name, channel.type, channel.provider
