"""Endpoints: an address, its sealed secrets and headers, and its health.

A webhook is an endpoint, and so is a subscription's own address.
"""

from datetime import timedelta
from functools import lru_cache

import msgspec
from yarl import URL

from app.context import RequestContext
from app.crypto.keyring import CannotOpen, Keyring
from app.kit import clock
from app.kit.errors import Conflict, Invalid
from app.kit.ids import new_id
from app.net import headers
from app.net.egress import Guard
from app.net.guard import find_character_problem
from app.net.secret_fields import HEADERS
from db.models import Webhook

from . import endpoint_keys, signing
from .endpoint_keys import EndpointKeys

# Sealed headers that are larger are opened each time.
_MAX_CACHED_BYTES = 2048
SECRET_OVERLAP = timedelta(hours=24)


def new_endpoint(
    context: RequestContext, tenant_id: str, url: str, custom_headers: dict[str, str], field: str
) -> tuple[Webhook, str]:
    """Returns an endpoint that is not stored yet, and its secret, which is shown once."""
    unmasked = HEADERS.unmask(custom_headers, {}, field)
    headers.validate(unmasked, field)
    webhook_id, secret = new_id("whk"), signing.new_secret()
    keys = EndpointKeys(secret, headers=unmasked)
    endpoint = Webhook(
        id=webhook_id,
        tenant_id=tenant_id,
        url=url,
        events=[],
        keys=endpoint_keys.seal(context.keyring, tenant_id, webhook_id, keys),
        created_by=context.principal.user_id,
    )
    return endpoint, secret


def check_url(guard: Guard, url: str, field: str) -> None:
    problem = guard.problem_with(url) or find_character_problem(url)
    if problem is not None:
        raise Invalid.field(field, problem)


def check_move(
    keyring: Keyring, endpoint: Webhook, url: str, new_headers: dict[str, str] | None, field: str
) -> None:
    """Refuses to send stored secret headers to another host. `new_headers` None keeps them all."""
    if _host_of(url) != _host_of(endpoint.url):
        stored = _keys_to_change(keyring, endpoint).headers
        HEADERS.check_move(HEADERS.mask(stored) if new_headers is None else new_headers, field)


def _host_of(url: str) -> tuple[str, str | None, int | None]:
    """Returns scheme, host and port, also where the URL omits the default port."""
    parsed = URL(url)
    return parsed.scheme, parsed.host, parsed.port


def change_headers(
    keyring: Keyring, endpoint: Webhook, custom_headers: dict[str, str], field: str
) -> bool:
    """Seals new headers with the same secrets. Returns True when they differ from the stored."""
    stored = _keys_to_change(keyring, endpoint)
    unmasked = HEADERS.unmask(custom_headers, stored.headers, field)
    headers.validate(unmasked, field)
    if unmasked == stored.headers:
        return False
    changed = msgspec.structs.replace(stored, headers=unmasked)
    endpoint.keys = endpoint_keys.seal(keyring, endpoint.tenant_id, endpoint.id, changed)
    endpoint.secrets_updated_at = clock.now()
    return True


async def renew_secret(context: RequestContext, endpoint: Webhook) -> str:
    """Returns a new secret. The old one also signs for a day, until receivers have changed."""
    stored = _open_keys(context.keyring, endpoint.tenant_id, endpoint.id, endpoint.keys)
    secret = signing.new_secret()
    renewed = EndpointKeys(secret)
    if stored is not None:
        renewed = EndpointKeys(secret, stored.secret, stored.headers)
    endpoint.keys = endpoint_keys.seal(context.keyring, endpoint.tenant_id, endpoint.id, renewed)
    endpoint.secrets_updated_at = clock.now()
    endpoint.previous_until = endpoint.secrets_updated_at + SECRET_OVERLAP
    await (await context.tx.session()).flush()
    return secret


def reset_health(endpoint: Webhook) -> None:
    """Clears the reason why the endpoint was disabled and the time since when it fails."""
    endpoint.failing_since = endpoint.disabled_reason = None


def _open_keys(
    keyring: Keyring, tenant_id: str, webhook_id: str, sealed: bytes
) -> EndpointKeys | None:
    """Returns None where the root key that sealed them is lost; only a new secret helps then."""
    try:
        return endpoint_keys.unseal(keyring, tenant_id, webhook_id, sealed)
    except CannotOpen:
        return None


def masked_headers(
    keyring: Keyring, tenant_id: str, webhook_id: str, sealed: bytes
) -> dict[str, str]:
    """Returns the custom headers as the API shows them; none where the root key is lost."""
    mask = _mask_small if len(sealed) <= _MAX_CACHED_BYTES else _mask_headers
    try:
        return dict(mask(keyring, tenant_id, webhook_id, sealed))
    except CannotOpen:
        return {}


def _mask_headers(
    keyring: Keyring, tenant_id: str, webhook_id: str, sealed: bytes
) -> tuple[tuple[str, str], ...]:
    opened = endpoint_keys.unseal(keyring, tenant_id, webhook_id, sealed).headers
    return tuple(HEADERS.mask(opened).items())


# Lists show the headers of many endpoints. The entries have no secrets and at most 7 MB together.
_mask_small = lru_cache(maxsize=1000)(_mask_headers)


def _keys_to_change(keyring: Keyring, endpoint: Webhook) -> EndpointKeys:
    keys = _open_keys(keyring, endpoint.tenant_id, endpoint.id, endpoint.keys)
    if keys is None:
        raise Conflict("Its secret cannot be decrypted with this instance's keys; rotate it first")
    return keys


def origin_of(url: str) -> str:
    """Leaves out the path and the query, which are often secret: events go to other systems."""
    return str(URL(url).origin())
