from typing import Annotated

from litestar import Controller, delete, get, post, put
from litestar.params import JSONBody, QueryParameter

from app.domain.vault import audit, service, trials
from app.domain.vault.schemas import (
    AccessList,
    AccessRule,
    AuditEntry,
    CreateCredential,
    CredentialSummary,
    CredentialView,
    GrantAccess,
    Revealed,
    TestResult,
    TypeList,
    UpdateCredential,
    UpdateSecrets,
)
from app.domain.vault.service import Vault
from app.domain.vault.types import Type
from app.http.given import HttpRequest, Id, Page, Tx
from app.http.paging import Paged, Search, Sort
from app.parts import parts_of
from app.security.principal import caller_of, principal_of
from db.session import Tx as _Tx


def _vault(request: HttpRequest, tx: _Tx) -> Vault:
    parts, caller = parts_of(request), caller_of(request)
    return Vault(tx, parts.keyring, parts.egress.guard, principal_of(request), caller.address)


class CredentialController(Controller):
    path = "/v1/credentials"
    tags = ["Credentials"]  # noqa: RUF012  # litestar's own type

    @get(summary="List credentials", needs="credentials:read")
    async def list_credentials(
        self,
        tx: Tx,
        page_in: Page,
        type_: Annotated[Type | None, QueryParameter(name="type", description="Only these")] = None,
        search: Search = None,
        sort: Sort = None,
    ) -> Paged[CredentialSummary]:
        """`search` looks in names. Sort by name, type, created_at, updated_at, last_used_at or
        last_tested_at; the newest first unless told otherwise.
        """
        return await service.page_of(tx, page_in, type_=type_, search=search, sort=sort)

    @post(summary="Add a credential", needs="credentials:write")
    async def create_credential(
        self, request: HttpRequest, tx: Tx, data: JSONBody[CreateCredential]
    ) -> CredentialView:
        """The secrets are sealed at once; only `reveal` shows them again."""
        return await service.create(_vault(request, tx), data)

    @get("/types", summary="List the types of credentials", needs="credentials:read")
    async def list_types(self) -> TypeList:
        """Each with the JSON Schema of its secrets, and how a test tries it."""
        return TypeList(service.every_type())

    @get("/audit", summary="Read the audit trail", needs="credentials:read")
    async def list_audit(self, tx: Tx, page_in: Page) -> Paged[AuditEntry]:
        """What was done with all credentials, the latest first."""
        return await audit.entries(tx, page_in)

    @get("/{credential_id:str}", summary="Get a credential", needs="credentials:read")
    async def get_credential(self, tx: Tx, credential_id: Id) -> CredentialView:
        """Without its secrets; `secret_keys` are their names."""
        return await service.get(tx, credential_id)

    @put("/{credential_id:str}", summary="Change a credential", needs="credentials:write")
    async def update_credential(
        self, request: HttpRequest, tx: Tx, credential_id: Id, data: JSONBody[UpdateCredential]
    ) -> CredentialView:
        """Any subset of name, description, metadata and secrets; the type stays. A map that is
        given replaces the stored one.
        """
        return await service.update(_vault(request, tx), credential_id, data)

    @delete("/{credential_id:str}", summary="Delete a credential", needs="credentials:write")
    async def delete_credential(self, request: HttpRequest, tx: Tx, credential_id: Id) -> None:
        """Tools that use it fail from now on; its audit trail stays."""
        await service.delete(_vault(request, tx), credential_id)

    @get(
        "/{credential_id:str}/reveal",
        summary="Reveal the secrets",
        needs="credentials:reveal",
        judged=True,
    )
    async def reveal_credential(self, request: HttpRequest, credential_id: Id) -> Revealed:
        """Written to the audit trail first, and so is a try without the permission."""
        principal = principal_of(request)
        refusal = None
        async with parts_of(request).db.tx(principal.scope) as tx:
            at = _vault(request, tx)
            if principal.may("credentials:reveal"):
                shown = await service.reveal(at, credential_id)
            elif principal.may("credentials:read"):
                refusal = await service.refuse_reveal(at, credential_id)
            else:
                principal.require("credentials:reveal")
        if refusal is not None:
            raise refusal
        return shown

    @put("/{credential_id:str}/secrets", summary="Replace the secrets", needs="credentials:write")
    async def update_secrets(
        self, request: HttpRequest, tx: Tx, credential_id: Id, data: JSONBody[UpdateSecrets]
    ) -> CredentialView:
        """The whole set: what is left out is no longer there."""
        return await service.update_secrets(_vault(request, tx), credential_id, data.secrets)

    @post(
        "/{credential_id:str}/test",
        summary="Test a credential",
        needs="credentials:write",
        status_code=200,
        idempotent=False,
        cost="execute",
    )
    async def test_credential(self, request: HttpRequest, credential_id: Id) -> TestResult:
        """Opens a real connection, as `tested_by` of its type says. What fails is
        `success: false`, and the credential is no longer valid.
        """
        parts, principal = parts_of(request), principal_of(request)
        return await trials.run(parts, principal, caller_of(request).address, credential_id)

    @get(
        "/{credential_id:str}/audit", summary="Read a credential's audit", needs="credentials:read"
    )
    async def list_own_audit(self, tx: Tx, page_in: Page, credential_id: Id) -> Paged[AuditEntry]:
        """The latest first; also of one that was deleted."""
        return await service.audit_of(tx, page_in, credential_id)

    @get("/{credential_id:str}/access", summary="List access rules", needs="credentials:read")
    async def list_access(self, tx: Tx, credential_id: Id) -> AccessList:
        return AccessList(await service.rules(tx, credential_id))

    @post("/{credential_id:str}/access", summary="Grant access", needs="credentials:write")
    async def grant_access(
        self, request: HttpRequest, tx: Tx, credential_id: Id, data: JSONBody[GrantAccess]
    ) -> AccessRule:
        """Lets one agent, tool, workflow or channel use the credential; checked at every use."""
        return await service.grant(_vault(request, tx), credential_id, data)

    @delete(
        "/{credential_id:str}/access/{access_id:str}",
        summary="Revoke access",
        needs="credentials:write",
    )
    async def revoke_access(
        self, request: HttpRequest, tx: Tx, credential_id: Id, access_id: Id
    ) -> None:
        await service.revoke(_vault(request, tx), credential_id, access_id)
