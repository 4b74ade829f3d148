from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from app.kit import validation
from app.kit.errors import Invalid, Problem

from .protocol import Done, NodeCall, NodeType, Outcome, Wait

_MAX_SECONDS = 366 * 86400


class DelayConfig(msgspec.Struct, forbid_unknown_fields=True):
    """Waits for a number of seconds, or until a time."""

    seconds: Annotated[float, Meta(ge=0, le=_MAX_SECONDS)] | None = None
    until: (
        Annotated[
            str, Meta(max_length=64, description="ISO 8601; UTC unless it names another zone")
        ]
        | None
    ) = None


class DelayNode(NodeType[DelayConfig]):
    name: ClassVar[str] = "delay"
    only_waits: ClassVar[bool] = True
    description: ClassVar[str] = "Waits for some time, up to a year"
    config: ClassVar[type[msgspec.Struct]] = DelayConfig
    example: ClassVar[dict[str, Any]] = {"seconds": 3600}
    ends_by_time: ClassVar[bool] = True

    def find_problems(self, config: dict[str, Any]) -> Iterator[Problem]:
        if (config.get("seconds") is None) == (config.get("until") is None):
            yield "", "needs either seconds or until"

    async def run(self, call: NodeCall, config: DelayConfig) -> Outcome:
        until = _find_end(config, call.now)
        return Wait(until=until) if until > call.now else Done({"until": until})


def _find_end(config: DelayConfig, now: datetime) -> datetime:
    if config.seconds is not None:
        return now + timedelta(seconds=config.seconds)
    until = validation.parse_time_field("until", config.until or "")
    if until - now > timedelta(seconds=_MAX_SECONDS):
        raise Invalid.field("until", "must be within a year")
    return until
