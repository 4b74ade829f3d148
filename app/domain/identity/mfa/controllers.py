from litestar import Controller, delete, get, post
from litestar.params import JSONBody

from app.domain.identity.accounts.schemas import MfaVerify, TokenPair
from app.http.dependencies import Address, ClientInfo, Id, Principal, Services, Tx
from app.kit.views import Done

from . import service, sign_in
from .schemas import (
    CodeVerdict,
    Devices,
    EnableMfa,
    MfaEnabledView,
    MfaResetView,
    MfaSetup,
    MfaStatus,
    RecoveryCodes,
    ShowCode,
)


class MfaSignInController(Controller):
    path = "/auth"
    tags = ["Auth"]

    @post(
        "/mfa/verify",
        summary="Sign in with a code",
        status_code=200,
        public=True,
        errors=(401,),
        idempotent=False,
    )
    async def sign_in_with_mfa(
        self, services: Services, client: ClientInfo, data: JSONBody[MfaVerify]
    ) -> TokenPair:
        """A code of an authenticator, or a recovery code. The mfa_token is valid for five minutes
        and five tries.
        """
        return await sign_in.verify_mfa(services, data, client)


class MfaController(Controller):
    path = "/api/v1/mfa"
    tags = ["MFA"]
    opt = {"own": True}

    @get("/status", summary="Get the MFA status")
    async def get_mfa_status(self, tx: Tx, principal: Principal) -> MfaStatus:
        return await service.get_status(tx, principal)

    @post("/setup", summary="Set up MFA", status_code=200, errors=(403,), idempotent=False)
    async def set_up_mfa(self, services: Services, principal: Principal) -> MfaSetup:
        """Returns a secret for an authenticator app and ten recovery codes, shown once. They work
        once `POST /api/v1/mfa/enable` has confirmed them with a code. Also adds another device.
        """
        return await service.setup(services, principal)

    @post("/enable", summary="Enable MFA", status_code=200, errors=(403,), idempotent=False)
    async def enable_mfa(
        self,
        services: Services,
        principal: Principal,
        address: Address,
        data: JSONBody[EnableMfa],
    ) -> MfaEnabledView:
        return await service.enable(services, principal, data, address)

    @post("/disable", summary="Disable MFA", status_code=200, idempotent=False)
    async def disable_mfa(
        self,
        services: Services,
        principal: Principal,
        address: Address,
        data: JSONBody[ShowCode],
    ) -> Done:
        """Takes a code of any device, or a recovery code."""
        return await service.disable(services, principal, data.code, address)

    @post("/verify", summary="Verify a code", status_code=200, idempotent=False)
    async def verify_mfa_code(
        self,
        services: Services,
        principal: Principal,
        address: Address,
        data: JSONBody[ShowCode],
    ) -> CodeVerdict:
        """A code works once, on every endpoint. After a valid one, this session may change MFA."""
        valid = await service.verify_code(services, principal, data.code, address)
        return CodeVerdict(valid)

    @get("/devices", summary="List MFA devices")
    async def list_mfa_devices(self, tx: Tx, principal: Principal) -> Devices:
        return await service.list_devices(tx, principal)

    @delete("/devices/{device_id:str}", summary="Remove a device", status_code=200, errors=(403,))
    async def remove_mfa_device(
        self, tx: Tx, services: Services, principal: Principal, device_id: Id
    ) -> Done:
        """Removing the last device turns MFA off."""
        return await service.remove_device(tx, services, principal, device_id)

    @post(
        "/recovery-codes",
        summary="Create new recovery codes",
        status_code=200,
        errors=(403,),
        idempotent=False,
    )
    async def create_recovery_codes(
        self, tx: Tx, services: Services, principal: Principal
    ) -> RecoveryCodes:
        return await service.replace_recovery_codes(tx, services, principal)


class MfaResetController(Controller):
    path = "/api/v1/users"
    tags = ["Users"]

    @post(
        "/{user_id:str}/mfa/reset",
        summary="Reset somebody's MFA",
        status_code=200,
        needs="admin:users",
    )
    async def reset_user_mfa(
        self, tx: Tx, services: Services, principal: Principal, user_id: Id
    ) -> MfaResetView:
        return await service.reset(tx, services, principal, user_id)
