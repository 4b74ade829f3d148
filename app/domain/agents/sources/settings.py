"""The settings of sources: where their documents are, and the secrets for that."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from app.crypto.keyring import CannotOpen, Keyring, SealContext
from app.kit import validation
from app.kit.errors import Invalid
from app.net.egress import Guard
from db.fast import Row
from db.models import DocumentSource

from .failures import SyncFailed
from .kinds.protocol import SourceKind
from .kinds.registry import KINDS
from .schedules import ScheduleName


class Source(msgspec.Struct, frozen=True):
    """A source as a sync needs it. `config` and `secrets` are structs of its kind."""

    tenant_id: str
    id: str
    agent_id: str
    name: str
    kind: type[SourceKind]
    config: Any
    secrets: Any
    schedule: ScheduleName
    is_reviewed: bool
    max_documents: int
    include: list[str]
    exclude: list[str]
    created_by: str | None
    sync_no: int
    started_at: datetime
    failed_count: int


def load(keyring: Keyring, row: Row) -> Source:
    """Raises SyncFailed when the settings are of no use."""
    kind = KINDS[row["type"]]
    return Source(
        tenant_id=row["tenant_id"],
        id=row["id"],
        agent_id=row["agent_id"],
        name=row["name"],
        kind=kind,
        config=_convert(row["config"], kind.config_type),
        secrets=_open(keyring, row, kind),
        schedule=row["schedule"],
        is_reviewed=row["apply"] == "review",
        max_documents=row["max_documents"],
        include=row["include"],
        exclude=row["exclude"],
        created_by=row["created_by"],
        sync_no=row["sync_no"],
        started_at=row["started_at"],
        failed_count=row["failed_count"],
    )


def _convert(values: Any, struct: type[msgspec.Struct]) -> Any:
    try:
        return msgspec.convert(values, struct)
    except msgspec.ValidationError:
        raise SyncFailed(
            "The source needs other settings in this version; set them again"
        ) from None


def _open(keyring: Keyring, row: Row, kind: type[SourceKind]) -> Any:
    if row["secrets"] is None or kind.secrets_type is None:
        return None
    try:
        opened = keyring.open(row["secrets"], _seal_context(row["tenant_id"], row["id"]))
    except CannotOpen:
        raise SyncFailed(
            "The source has secrets that this instance's keys cannot decrypt; set them again"
        ) from None
    return _convert(msgspec.json.decode(opened), kind.secrets_type)


def seal(keyring: Keyring, tenant_id: str, source_id: str, secrets: Mapping[str, str]) -> bytes:
    return keyring.seal(msgspec.json.encode(secrets), _seal_context(tenant_id, source_id))


def _seal_context(tenant_id: str, source_id: str) -> SealContext:
    return SealContext.of(DocumentSource.secrets, tenant_id, source_id)


def validate(type_: str, values: dict[str, Any], guard: Guard, *, has_secrets: bool) -> Any:
    """Returns the config of a source. Raises Invalid. Secrets are not sent over plain HTTP."""
    kind = KINDS[type_]
    config = validation.convert_field(kind.config_type, values, "config")
    problem = kind.find_problem(config)
    if problem is not None:
        raise Invalid.field(f"config.{problem[0]}", problem[1])
    name, url = kind.address(config)
    reason = guard.problem_with(url, allow_http=not has_secrets)
    if reason is None and guard.check_url(url).fragment:
        reason = "must have no fragment"
    if reason is not None:
        raise Invalid.field(f"config.{name}", reason)
    return config


def validate_secrets(type_: str, values: dict[str, str]) -> None:
    """Raises Invalid, with the names of the secrets alone."""
    kind = KINDS[type_]
    if not values:
        return
    if kind.secrets_type is None:
        raise Invalid.field("secrets", f"must be empty: the type {type_} has none")
    validation.convert_field(kind.secrets_type, values, "secrets")


def destination(type_: str, values: dict[str, Any], guard: Guard) -> str:
    """Returns the server that receives the secrets."""
    kind = KINDS[type_]
    return str(guard.check_url(kind.address(msgspec.convert(values, kind.config_type))[1]).origin())
