"""How a tool runs for an agent: its own config, the agent's over it, and whose auth is shown."""

from typing import Any

import msgspec

from app.domain.tools import auths, configs, registry
from app.domain.tools.auths import AuthConfig
from app.domain.tools.configs import Config
from app.domain.vault.service import CredentialUser
from app.kit.crypto import Keyring, SealContext
from app.kit.egress import Guard
from db.fast import Row
from db.models import AgentTool


class Plan(msgspec.Struct, frozen=True):
    tool_id: str
    tool_type: str
    config: Config
    auth_type: str
    sealed: bytes | None
    seal_context: SealContext
    # Whom a rule must name before a credential is opened.
    user: CredentialUser

    def auth(self, keyring: Keyring, guard: Guard) -> AuthConfig | None:
        """What was sealed for the very place that this leads to."""
        if self.sealed is None:
            return None
        to = registry.destination(self.tool_type, self.config, guard)
        return auths.decode(self.auth_type, keyring.open(self.sealed, self.seal_context), to)


def override_context(tenant_id: str, attachment_id: str) -> SealContext:
    return SealContext.of(AgentTool.override_auth, tenant_id, attachment_id)


def plan_of(row: Row, agent_id: str | None, guard: Guard) -> Plan:
    """From a row that `queries` reads for a run. Raises Invalid where the two do not fit."""
    tool_id, tool_type, tenant_id = row["tool_id"], row["tool_type"], row["tenant_id"]
    base = msgspec.json.decode(row["config"])
    own = Plan(
        tool_id,
        tool_type,
        registry.as_config(tool_type, base),
        row["auth_type"],
        row["auth_config"],
        registry.seal_context(tenant_id, tool_id),
        CredentialUser("tool", tool_id),
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
            seal_context=override_context(tenant_id, row["attachment_id"]),
            user=CredentialUser("agent", agent_id),
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
    return configs.validate(tool_type, whole, guard, "config_override", plain=plain)


def seconds_of(config: Config) -> float:
    return config.timeout_ms / 1000
