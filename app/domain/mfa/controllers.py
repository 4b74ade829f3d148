from typing import Any

from litestar import Controller, Request, delete, get, post
from litestar.params import JSONBody

from app.domain.mfa import service
from app.domain.mfa.schemas import (
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
from app.http.answers import Done
from app.http.given import Id, Parts, Principal, Tx
from app.security.principal import caller_of


class MfaController(Controller):
    path = "/api/v1/mfa"
    tags = ["MFA"]  # noqa: RUF012  # litestar's own type
    opt = {"own": True}  # noqa: RUF012

    @get("/status", summary="MFA status")
    async def get_status(self, tx: Tx, principal: Principal) -> MfaStatus:
        return await service.status(tx, principal)

    @post("/setup", summary="Set up MFA", status_code=200, errors=(403,), idempotent=False)
    async def setup(self, tx: Tx, parts: Parts, principal: Principal) -> MfaSetup:
        """Gives a secret for an authenticator app and ten recovery codes, shown once. They hold
        once `POST /api/v1/mfa/enable` has confirmed them with a code. Also adds another device.
        """
        return await service.setup(tx, parts, principal)

    @post("/enable", summary="Enable MFA", status_code=200, errors=(403,), idempotent=False)
    async def enable(
        self,
        request: Request[Any, Any, Any],
        parts: Parts,
        principal: Principal,
        data: JSONBody[EnableMfa],
    ) -> MfaEnabledView:
        return await service.enable(parts, principal, data, caller_of(request).address)

    @post("/disable", summary="Disable MFA", status_code=200, idempotent=False)
    async def disable(
        self,
        request: Request[Any, Any, Any],
        parts: Parts,
        principal: Principal,
        data: JSONBody[ShowCode],
    ) -> Done:
        """Takes a code of any device, or a recovery code."""
        return await service.disable(parts, principal, data.code, caller_of(request).address)

    @post("/verify", summary="Verify a code", status_code=200, idempotent=False)
    async def verify(
        self,
        request: Request[Any, Any, Any],
        parts: Parts,
        principal: Principal,
        data: JSONBody[ShowCode],
    ) -> CodeVerdict:
        """A code works once, here as everywhere. A right one lets this session change MFA."""
        valid = await service.verify(parts, principal, data.code, caller_of(request).address)
        return CodeVerdict(valid)

    @get("/devices", summary="List MFA devices")
    async def list_devices(self, tx: Tx, principal: Principal) -> Devices:
        return await service.devices(tx, principal)

    @delete("/devices/{device_id:str}", summary="Remove a device", status_code=200, errors=(403,))
    async def remove_device(
        self, tx: Tx, parts: Parts, principal: Principal, device_id: Id
    ) -> Done:
        """Removing the last one turns MFA off."""
        return await service.remove_device(tx, parts, principal, device_id)

    @post(
        "/recovery-codes",
        summary="Make new recovery codes",
        status_code=200,
        errors=(403,),
        idempotent=False,
    )
    async def new_recovery_codes(self, tx: Tx, parts: Parts, principal: Principal) -> RecoveryCodes:
        return await service.new_recovery_codes(tx, parts, principal)


class MfaResetController(Controller):
    path = "/api/v1/users"
    tags = ["Users"]  # noqa: RUF012

    @post(
        "/{user_id:str}/mfa/reset",
        summary="Reset somebody's MFA",
        status_code=200,
        needs="admin:users",
    )
    async def reset(self, tx: Tx, parts: Parts, principal: Principal, user_id: Id) -> MfaResetView:
        return await service.reset(tx, parts, principal, user_id)
