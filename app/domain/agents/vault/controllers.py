from typing import Annotated

from litestar import Controller, delete, get, post, put
from litestar.params import JSONBody, QueryParameter

from app.http.dependencies import Address, Context, Id, Page, Principal, Services, Tx
from app.http.paging import TIME, Search, Sort, parse_time
from app.http.records import Record, lock_row
from app.kit.paging import Paged
from app.kit.views import Data, TestResult

from . import audit, connection_tests, service
from .queries import AuditFilter
from .schemas import (
    AccessRule,
    Action,
    ActorType,
    AuditEntry,
    CreateCredential,
    CredentialSummary,
    CredentialView,
    GrantAccess,
    Revealed,
    TypeView,
    UpdateCredential,
    UpdateSecrets,
)
from .types import Type

_CREDENTIAL = Record(
    lock_row("credentials", id="credential_id"), "get_credential", tagged=("secrets_updated_at",)
)
OfAction = Annotated[Action | None, QueryParameter(description="Only rows of this action")]
OfActor = Annotated[ActorType | None, QueryParameter(description="Only what such an actor did")]
Time = Annotated[str | None, QueryParameter(schema_extra=TIME)]


def _read_filters(
    action: str | None,
    actor_type: str | None,
    after: str | None,
    before: str | None,
) -> AuditFilter:
    times = parse_time("after", after), parse_time("before", before)
    return AuditFilter(action, actor_type, *times)


class CredentialController(Controller):
    path = "/v1/credentials"
    tags = ["Credentials"]

    @get(summary="List credentials", needs="credentials:read")
    async def list_credentials(
        self,
        tx: Tx,
        page_in: Page,
        type_: Annotated[
            Type | None, QueryParameter(name="type", description="Only credentials of this type")
        ] = None,
        search: Search = None,
        sort: Sort = None,
    ) -> Paged[CredentialSummary]:
        """`search` looks in names. Sort by name, type, created_at, updated_at, last_used_at or
        last_tested_at; the default is the newest first.
        """
        return await service.list_page(tx, page_in, type_=type_, search=search, sort=sort)

    @post(summary="Add a credential", needs="credentials:write")
    async def create_credential(
        self, context: Context, data: JSONBody[CreateCredential]
    ) -> CredentialView:
        """The secrets are stored encrypted; only `reveal` returns them."""
        return await service.create(context, data)

    @get("/types", summary="List the types of credentials", needs="credentials:read")
    async def list_credential_types(self) -> Data[list[TypeView]]:
        """Each with the JSON Schema of its secrets; `tested_by` describes its connection test."""
        return Data(service.list_types())

    @get("/audit", summary="Read the audit trail", needs="credentials:read")
    async def list_vault_audit(
        self,
        tx: Tx,
        page_in: Page,
        action: OfAction = None,
        actor_type: OfActor = None,
        after: Time = None,
        before: Time = None,
    ) -> Paged[AuditEntry]:
        """The audit rows of all credentials, the latest first."""
        filters = _read_filters(action, actor_type, after, before)
        return await audit.list_entries(tx, page_in, filters)

    @get("/{credential_id:str}", summary="Get a credential", needs="credentials:read")
    async def get_credential(self, tx: Tx, credential_id: Id) -> CredentialView:
        """Without its secrets; `secret_keys` are their names."""
        return await service.get(tx, credential_id)

    @put(
        "/{credential_id:str}",
        summary="Change a credential",
        needs="credentials:write",
        record=_CREDENTIAL,
    )
    async def update_credential(
        self, context: Context, credential_id: Id, data: JSONBody[UpdateCredential]
    ) -> CredentialView:
        """Any subset of name, description, metadata and secrets; the type cannot change. A map
        replaces the stored one as a whole. `test_url` and `allowed_hosts` need credentials:reveal.
        """
        return await service.update(context, credential_id, data)

    @delete("/{credential_id:str}", summary="Delete a credential", needs="credentials:write")
    async def delete_credential(self, context: Context, credential_id: Id) -> None:
        """Tools that use it fail from now on; its audit trail is kept."""
        await service.delete(context, credential_id)

    @get(
        "/{credential_id:str}/reveal",
        summary="Reveal the secrets",
        needs="credentials:reveal",
        handler_checks=True,
    )
    async def reveal_credential(
        self, services: Services, principal: Principal, address: Address, credential_id: Id
    ) -> Revealed:
        """Written to the audit trail first; so is an attempt without the permission."""
        return await service.reveal(services, principal, address, credential_id)

    @put(
        "/{credential_id:str}/secrets",
        summary="Replace the secrets",
        needs="credentials:write",
        record=_CREDENTIAL,
    )
    async def update_credential_secrets(
        self, context: Context, credential_id: Id, data: JSONBody[UpdateSecrets]
    ) -> CredentialView:
        """Replaces all secrets; those that the body leaves out are deleted."""
        return await service.update_secrets(context, credential_id, data.secrets)

    @post(
        "/{credential_id:str}/test",
        summary="Test a credential",
        needs="credentials:write",
        status_code=200,
        idempotent=False,
        cost="execute",
    )
    async def test_credential(
        self, services: Services, principal: Principal, address: Address, credential_id: Id
    ) -> TestResult:
        """Opens a real connection, as `tested_by` of its type describes. A failed test returns
        `success: false` and marks the credential as not valid.
        """
        return await connection_tests.run(services, principal, address, credential_id)

    @get(
        "/{credential_id:str}/audit", summary="Read a credential's audit", needs="credentials:read"
    )
    async def list_credential_audit(
        self,
        tx: Tx,
        page_in: Page,
        credential_id: Id,
        action: OfAction = None,
        actor_type: OfActor = None,
        after: Time = None,
        before: Time = None,
    ) -> Paged[AuditEntry]:
        """The latest first; also of a deleted credential."""
        filters = _read_filters(action, actor_type, after, before)
        return await service.list_audit(tx, page_in, filters, credential_id)

    @get("/{credential_id:str}/access", summary="List access rules", needs="credentials:read")
    async def list_credential_access(self, tx: Tx, credential_id: Id) -> Data[list[AccessRule]]:
        return Data(await service.list_rules(tx, credential_id))

    @post("/{credential_id:str}/access", summary="Grant access", needs="credentials:write")
    async def grant_credential_access(
        self, context: Context, credential_id: Id, data: JSONBody[GrantAccess]
    ) -> AccessRule:
        """Lets one agent, tool, workflow or channel use the credential; checked at every use.

        Without `allowed_hosts` this needs credentials:reveal too, unless you created the credential
        and nobody else has replaced its secrets. With them, the tool's host must be among them.
        """
        return await service.grant_access(context, credential_id, data)

    @delete(
        "/{credential_id:str}/access/{access_id:str}",
        summary="Revoke access",
        needs="credentials:write",
    )
    async def revoke_credential_access(
        self, context: Context, credential_id: Id, access_id: Id
    ) -> None:
        await service.revoke_access(context, credential_id, access_id)
