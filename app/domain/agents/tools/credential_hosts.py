"""The hosts to which tools and agents would send a credential."""

from app.domain.area import CredentialTarget
from db.models import AgentTool, Tool

from . import configs, queries, run_plan, service, stored_auth
from .auth_configs import CredentialAuth


async def list_hosts(target: CredentialTarget) -> list[str]:
    """Returns the host of a tool, or the hosts for which an agent's overrides name the credential.
    The host of a tool that connects to none is empty.
    """
    if target.type == "tool":
        tool = await service.find(target.tx, target.id)
        config = stored_auth.parse_config(tool.tool_type, tool.config)
        return [configs.destination_host(config, target.services.egress.guard)]
    if target.type == "agent":
        rows = await queries.list_overrides_of_agent(target.tx, target.id)
        hosts = (_find_override_host(target, attachment, tool) for attachment, tool in rows)
        return [host for host in hosts if host is not None]
    return []


def _find_override_host(target: CredentialTarget, attachment: AgentTool, tool: Tool) -> str | None:
    """Returns None when the override cannot be used, or uses something else."""
    guard = target.services.egress.guard
    opened = run_plan.open_override(attachment, tool, target.services.keyring, guard)
    if opened is None:
        return None
    config, auth = opened
    if not isinstance(auth, CredentialAuth) or auth.credential_id != target.credential_id:
        return None
    return configs.destination_host(config, guard)
