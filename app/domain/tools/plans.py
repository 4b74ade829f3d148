"""How a tool runs for an agent: its own config, the agent's over it, and whose auth is shown."""

from typing import Any

import msgspec

from app.domain.tools import auths, configs, service
from app.domain.tools.auths import AuthConfig
from app.domain.tools.configs import Config
from app.domain.vault.opened import User
from app.kit.crypto import Keyring, Place
from app.kit.egress import Guard
from db.fast import Row


class Plan(msgspec.Struct, frozen=True):
    tool_id: str
    tool_type: str
    config: Config
    auth_type: str
    sealed: bytes | None
    place: Place
    # Whom a rule must name before a credential is opened.
    user: User

    def auth(self, keyring: Keyring, guard: Guard) -> AuthConfig | None:
        """What was sealed for the very place that this leads to."""
        if self.sealed is None:
            return None
        to = service.destination(self.tool_type, self.config, guard)
        return auths.read(self.auth_type, keyring.open(self.sealed, self.place), to)


def override_place(tenant_id: str, attachment_id: str) -> Place:
    return Place(tenant=tenant_id, table="agent_tools", record=attachment_id, field="override_auth")


def plan_of(row: Row, agent_id: str | None, guard: Guard) -> Plan:
    """From a row that `queries` reads for a run. Raises Invalid where the two do not fit."""
    tool_id, tool_type, tenant_id = row["tool_id"], row["tool_type"], row["tenant_id"]
    base = msgspec.json.decode(row["config"])
    own = Plan(
        tool_id,
        tool_type,
        service.as_config(tool_type, base),
        row["auth_type"],
        row["auth_config"],
        service.place_of(tenant_id, tool_id),
        User("tool", tool_id),
    )
    if agent_id is None or row["attachment_id"] is None or row["config_override"] is None:
        return own
    override: dict[str, Any] = msgspec.json.decode(row["config_override"])
    config = overridden(tool_type, base, override, guard, plain=True)
    if row["override_auth"] is not None:
        return msgspec.structs.replace(
            own,
            config=config,
            sealed=row["override_auth"],
            place=override_place(tenant_id, row["attachment_id"]),
            user=User("agent", agent_id),
        )
    moved = configs.destination(config, guard) != configs.destination(own.config, guard)
    if moved:
        # What was meant for one host is not shown to another.
        return msgspec.structs.replace(own, config=config, auth_type="none", sealed=None)
    return msgspec.structs.replace(own, config=config)


def overridden(
    tool_type: str, base: dict[str, Any], override: dict[str, Any], guard: Guard, *, plain: bool
) -> Config:
    whole = configs.kept(tool_type, configs.merged(base, override))
    return configs.checked(tool_type, whole, guard, "config_override", plain=plain)


def seconds_of(config: Config) -> float:
    return config.timeout_ms / 1000
