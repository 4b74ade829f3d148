from typing import Final

from app.domain.area import AgentDeletion, Area
from app.security.permissions import DEVELOPERS, Permission
from app.services import Services
from db.storage_quota import UncountedTable

from . import queries
from .events import CredentialCreated, CredentialDeleted, CredentialInvalid, CredentialUpdated
from .oauth import TokenRefresher


def _create_token_refresher(services: Services) -> tuple[TokenRefresher]:
    return (TokenRefresher(services.db, services.keyring, services.egress),)


async def _delete_access_rules(deletion: AgentDeletion) -> None:
    await queries.delete_rules(deletion.tx, deletion.tenant_id, "agent", deletion.agent_ids)


AREA: Final = Area(
    name="vault",
    events=(CredentialCreated, CredentialUpdated, CredentialDeleted, CredentialInvalid),
    permissions=(
        Permission("credentials:read", "See credentials, without their secrets", DEVELOPERS),
        Permission("credentials:write", "Create, change and delete credentials", DEVELOPERS),
        Permission("credentials:reveal", "Read the secrets of credentials"),
    ),
    shared=_create_token_refresher,
    after_agents_deleted=_delete_access_rules,
    tables=(
        UncountedTable("credentials", "entered by hand, at most 50 secrets of 16 KB each"),
        UncountedTable("credential_access", "at most 500 of a credential"),
        UncountedTable("credential_audit", "small, and nobody may delete it"),
        UncountedTable("credential_audit_chains", "one for each tenant"),
    ),
)
