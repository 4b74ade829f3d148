"""Where the secrets of a credential may be sent, and who decides it.

Whoever chooses the host that receives a secret can read the secret there. So the choice needs
credentials:reveal, unless the credential's `allowed_hosts` limit it or the caller knows the
secrets.
"""

import ipaddress
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from yarl import URL

from app.context import RequestContext
from app.kit.errors import Invalid, Problem
from db.models import Credential

from . import queries
from .decrypted import IntegrationRef
from .types import TYPES


class CredentialUse(msgspec.Struct, frozen=True):
    """An integration and the host to which it is to send a credential. `current_id` is the
    credential that it sends there already.
    """

    tenant_id: str
    integration: IntegrationRef
    host: str
    current_id: str | None = None


_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\Z")


def find_host_problems(hosts: list[str], field: str) -> Iterator[Problem]:
    """Yields the entries of `allowed_hosts` that could never match a host."""
    for index, host in enumerate(hosts):
        if _normalize_entry(host) is None:
            message = "must be a host name or an IP address, without scheme, port, path and *"
            yield f"{field}.{index}", message


def _normalize_entry(entry: str) -> str | None:
    """Returns an entry in the form of `normalize_host`; None when it is no host."""
    try:
        ascii_name = URL.build(scheme="https", host=entry.strip("[]")).raw_host or ""
    except ValueError:
        return None
    host = normalize_host(ascii_name)
    return host if ":" in host or _NAME.match(host) else None


def normalize_host(host: str) -> str:
    """Returns the form in which hosts are compared. A name is not converted to ASCII: the caller
    passes the name that it connects to.
    """
    name = host.lower().rstrip(".")
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name


def find_refusal(metadata: dict[str, Any], type_: str, host: str) -> str | None:
    """Returns why the secrets may not be sent to the host, or None. A database credential names its
    own host, so it may be used where `host` is empty.
    """
    allowed = metadata.get("allowed_hosts")
    if allowed is None or (not host and TYPES[type_].usable_without_host):
        return None
    if normalize_host(host) in {_normalize_entry(str(entry)) for entry in allowed}:
        return None
    return f"{host or 'a tool without a host'} is not among the allowed_hosts of the credential"


async def check_reference(
    context: RequestContext, credential: Credential, use: CredentialUse, field: str
) -> None:
    """Raises unless the caller may make the integration name the credential for its host."""
    integration = use.integration
    takes_effect = use.current_id != credential.id and await queries.has_rule(
        context.tx, use.tenant_id, credential.id, integration.type, integration.id
    )
    await check_use(context, credential, [use.host], field, takes_effect=takes_effect)


async def check_use(
    context: RequestContext,
    credential: Credential,
    hosts: list[str],
    field: str,
    *,
    takes_effect: bool,
) -> None:
    """Raises unless the caller may let an integration send the secrets to these hosts.

    Without `takes_effect` nothing is decided, so that only the hosts count: the integration sends
    the secrets there already, or has no access rule, and whoever grants it decides.
    """
    for host in hosts:
        refusal = find_refusal(credential.about, credential.type, host)
        if refusal is not None:
            raise Invalid.field(field, refusal)
    if not takes_effect:
        return
    context.principal.require("credentials:write")
    if credential.about.get("allowed_hosts") is None:
        await require_knowledge(
            context,
            credential,
            "A credential without allowed_hosts can be sent to any host. Ask somebody with "
            "credentials:reveal to grant this, or to set allowed_hosts on the credential",
        )


async def require_knowledge(context: RequestContext, credential: Credential, message: str) -> None:
    """Raises Forbidden for a caller who may not reveal the secrets and did not set them all.

    To replace somebody else's secrets is not enough: what the caller decides then would still hold
    when the owner restores them.
    """
    principal = context.principal
    if principal.may("credentials:reveal"):
        return
    if not await queries.has_set_all_secrets(
        context.tx, credential.tenant_id, credential.id, principal.user_id
    ):
        raise principal.refusal("credentials:reveal", message)
