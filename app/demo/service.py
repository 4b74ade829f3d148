"""Creates the demo once: a published agent with documents, an embed key and a form.

What an operator deletes afterwards stays deleted, because the instance remembers the creation.
"""

import asyncio
import base64
from contextlib import suppress
from io import BytesIO
from typing import Final
from urllib.parse import urlsplit

import msgspec

from app.crypto.keyring import CannotOpen, Keyring
from app.demo import queries, shop
from app.demo.queries import DemoRecord
from app.domain.agents.definition import api as agents
from app.domain.agents.definition.errors import AgentNotFound
from app.domain.agents.knowledge.api import uploads
from app.domain.conversations.embed.api import keys
from app.domain.conversations.embed.errors import EmbedKeyNotFound
from app.domain.conversations.embed.schemas import CreateEmbedKey
from app.domain.forms.definition import api as forms
from app.domain.forms.definition.api import live
from app.domain.forms.definition.errors import FormNotFound
from app.kit import logs
from app.security.principal import EMBED_PREFIX, Principal
from app.services import Services
from app.settings import Settings, is_loopback
from db.session import ALL_TENANTS, Tx

log = logs.get("demo")

_FIRST_DELAY: Final = 1.0
_MAX_DELAY: Final = 300.0
_LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")


class Demo(msgspec.Struct, frozen=True):
    """What the page shows. `api_key` is None when the agent can no longer be used: it was deleted
    or unpublished, or its key was revoked. `form_slug` likewise.
    """

    agent_id: str
    api_key: str | None
    form_slug: str | None


# Creating


async def prepare(services: Services, stopped: asyncio.Event) -> None:
    """Creates the demo in the background of a web process; tries again until `stopped` is set."""
    delay = _FIRST_DELAY
    while not stopped.is_set():
        try:
            if services.readiness.problem is None and await ensure(services):
                return
        except Exception:  # the demo must not disturb the instance
            log.warning("the demo cannot be prepared", exc_info=True)
        with suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), delay)
        delay = min(2 * delay, _MAX_DELAY)


async def ensure(services: Services) -> bool:
    """Creates what is missing, in any number of processes at once. Returns False as long as there
    is no super_admin to own it.
    """
    async with services.db.tx(ALL_TENANTS) as tx:
        await queries.lock(tx)
        record = await queries.load(tx)
        if record is None:
            record = await _create(tx, services)
        elif record.kid not in services.keyring.kids:
            record = await _replace_key(tx, services, record)
    if record is None:
        return False
    if not record.has_documents:
        await _add_documents(services, record)
    return True


async def _create(tx: Tx, services: Services) -> DemoRecord | None:
    admin = await queries.find_admin(tx)
    if admin is None:
        return None
    principal = _principal_of(admin["id"], admin["tenant_id"])
    if await queries.has_agents(tx, principal.tenant_id):
        return await _record_absence(tx, services, principal)
    agent = await agents.create(tx, principal, shop.AGENT)
    form = await forms.create(tx, services, principal, shop.FORM)
    await forms.publish(tx, form.id)
    embed_key_id, kid = await _create_key(tx, services, agent.id)
    record = DemoRecord(
        tenant_id=principal.tenant_id,
        user_id=principal.user_id,
        agent_id=agent.id,
        form_slug=form.slug,
        embed_key_id=embed_key_id,
        kid=kid,
    )
    await queries.store(tx, record)
    return record


async def _record_absence(tx: Tx, services: Services, principal: Principal) -> DemoRecord:
    """Whoever has agents of their own needs no demo among them, also after they are deleted."""
    record = DemoRecord(
        tenant_id=principal.tenant_id,
        user_id=principal.user_id,
        agent_id="",
        form_slug="",
        embed_key_id="",
        kid=services.keyring.active,
        has_documents=True,
    )
    await queries.store(tx, record)
    return record


def _principal_of(user_id: str, tenant_id: str) -> Principal:
    return Principal(user_id, tenant_id, "super_admin", "", frozenset(), narrowed_to=tenant_id)


async def _add_documents(services: Services, record: DemoRecord) -> None:
    """Uploads the documents; of two processes that do so, one replaces those of the other."""
    packaged = [
        _PackagedFile(path.name, BytesIO(path.read_bytes()))
        for path in sorted(shop.DOCUMENTS.glob("*.md"))
    ]
    principal = _principal_of(record.user_id, record.tenant_id)
    with suppress(AgentNotFound):
        await uploads.train(services, principal, record.agent_id, packaged)
    async with services.db.tx(ALL_TENANTS) as tx:
        await queries.lock(tx)
        stored = await queries.load(tx) or record
        await queries.store(tx, msgspec.structs.replace(stored, has_documents=True))


class _PackagedFile(msgspec.Struct, frozen=True):
    filename: str
    content: BytesIO

    async def read(self, size: int = -1) -> bytes:
        return self.content.read(size)

    async def close(self) -> None:
        self.content.close()


# The embed key


async def _create_key(tx: Tx, services: Services, agent_id: str) -> tuple[str, str]:
    """Returns the id of the key, and the name of the root key that it is derived from."""
    kid = services.keyring.active
    data = CreateEmbedKey(
        agent_id=agent_id,
        name="Demo page",
        allowed_domains=list_origins(services.settings),
    )
    api_key = _derive_key(services.keyring, kid, agent_id)
    key = await keys.create(tx, services, data, api_key)
    return key.id, kid


def _derive_key(keyring: Keyring, kid: str, agent_id: str) -> str:
    """Returns the embed key, of which the database has only the hash."""
    secret = keyring.derive(kid, "demo_embed_key", agent_id)
    return EMBED_PREFIX + base64.urlsafe_b64encode(secret).decode().rstrip("=")


async def _replace_key(tx: Tx, services: Services, record: DemoRecord) -> DemoRecord:
    """Replaces the key after the removal of its root key, unless an operator has revoked it."""
    try:
        await keys.revoke(tx, record.embed_key_id)
    except EmbedKeyNotFound:
        return record
    embed_key_id, kid = await _create_key(tx, services, record.agent_id)
    record = msgspec.structs.replace(record, embed_key_id=embed_key_id, kid=kid)
    await queries.store(tx, record)
    return record


def list_origins(settings: Settings) -> list[str]:
    """Returns the origin of the instance; of a loopback address, with all names of it."""
    url = urlsplit(settings.public_url)
    port = f":{url.port}" if url.port else ""
    if not _is_own_address(url.hostname or ""):
        return [f"{url.scheme}://{url.netloc.rpartition('@')[2]}"]
    return [f"{url.scheme}://{host}{port}" for host in _LOOPBACK_HOSTS]


def _is_own_address(host: str) -> bool:
    """True also for the address of all interfaces, which no browser shows."""
    return is_loopback(host) or host in {"0.0.0.0", "::"}  # noqa: S104  # nothing listens here


# Showing


async def load(services: Services) -> Demo | None:
    """Returns None as long as the demo is not prepared."""
    record = await _load_record(services)
    if record is None or not record.has_documents:
        return None
    api_key = _find_key(services.keyring, record)
    if api_key is None:
        await ensure(services)
        record = await _load_record(services) or record
        api_key = _find_key(services.keyring, record)
    if api_key is not None and not await _is_usable(services, api_key):
        api_key = None
    try:
        form_slug = (await live.find_published(services, record.form_slug)).slug
    except FormNotFound:
        form_slug = None
    return Demo(record.agent_id, api_key, form_slug)


async def _load_record(services: Services) -> DemoRecord | None:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return await queries.load(tx)


def _find_key(keyring: Keyring, record: DemoRecord) -> str | None:
    """Returns None when its root key was removed since this process has started."""
    try:
        return _derive_key(keyring, record.kid, record.agent_id)
    except CannotOpen:
        return None


async def _is_usable(services: Services, api_key: str) -> bool:
    """True when the key is not revoked and its agent is published."""
    async with services.db.tx(None, autocommit=True) as tx:
        agent = await agents.find_by_embed_key(tx, services.keyring, keys.hash_key(api_key))
    return agent is not None and agent.runtime.status == "published"
