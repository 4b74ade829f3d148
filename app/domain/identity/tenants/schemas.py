from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

PlanName = Literal["free", "pro", "team", "enterprise"]
Name = Annotated[str, Meta(min_length=1, max_length=100, pattern=r"\S")]
Positive = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Days = Annotated[int, Meta(ge=1, le=3650)]


class Limits(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Limits of an enterprise tenant; those left out are the plan's."""

    example: ClassVar[dict[str, Any]] = {"requests_per_minute": 2400, "burst_multiplier": 3}

    requests_per_minute: Positive | UnsetType = UNSET
    requests_per_hour: Positive | UnsetType = UNSET
    requests_per_day: Positive | UnsetType = UNSET
    workflow_executions_per_minute: Positive | UnsetType = UNSET
    concurrent_executions: Positive | UnsetType = UNSET
    burst_multiplier: Annotated[int, Meta(ge=1, le=100)] | UnsetType = UNSET
    burst_seconds: Annotated[int, Meta(ge=1, le=3600)] | UnsetType = UNSET
    storage_mb: Positive | UnsetType = UNSET
    data_rows: Positive | UnsetType = UNSET
    events_days: Days | UnsetType = UNSET
    payloads_days: Days | UnsetType = UNSET
    executions_days: Days | UnsetType = UNSET
    conversations_days: Days | UnsetType = UNSET


class TenantView(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "id": "ten_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "name": "Acme",
        "plan": "enterprise",
        "limits": {"requests_per_minute": 2400},
        "created_at": "2026-01-01T12:00:00Z",
    }

    id: str
    name: str
    plan: PlanName
    limits: Limits
    created_at: datetime


class CreateTenant(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"name": "Acme", "plan": "team"}

    name: Name
    plan: PlanName = "free"
    limits: Limits | UnsetType = UNSET


class UpdateTenant(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "plan": "enterprise",
        "limits": {"requests_per_minute": 2400},
    }

    name: Name | UnsetType = UNSET
    plan: PlanName | UnsetType = UNSET
    limits: Limits | UnsetType = UNSET
