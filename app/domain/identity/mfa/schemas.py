from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from app.kit.validation import ONE_LINE

Code = Annotated[str, Meta(min_length=1, max_length=32)]

_USER = "usr_01k9x3m7e8c0v2q4r6t8w0y2a4"
_CODES = [
    "7KQ2MZXW4P", "B9TR3HLC8N", "QW5ZJ2VKD7", "M4XNP8R6TA", "C2HVY9KLE3",
    "Z8DWG5QJN4", "T6RBA3MXK9", "P7NLC4VHE2", "J3KYW8ZQD5", "R9GTM6BXA4",
]  # fmt: skip


class MfaStatus(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "enabled": True,
        "method": "totp",
        "devices_count": 1,
        "recovery_codes_remaining": 10,
    }

    enabled: bool
    method: Literal["totp"]
    devices_count: int
    recovery_codes_remaining: int


class MfaSetup(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "secret": "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP",
        "qr_code_url": "data:image/png;base64,iVBORw0KGgo=",
        "otpauth_url": "otpauth://totp/Parley:ada%40example.com"
        "?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=Parley",
        "recovery_codes": _CODES,
    }

    secret: str
    qr_code_url: str
    otpauth_url: str
    recovery_codes: list[str]


class EnableMfa(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"code": "123456", "name": "My phone"}

    code: Code
    name: Annotated[str, Meta(max_length=100, pattern=ONE_LINE)] | UnsetType = UNSET


class MfaEnabledView(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "message": "Multi-factor authentication is on; your next sign-in asks for a code",
        "recovery_codes_count": 10,
    }

    message: str
    recovery_codes_count: int


class ShowCode(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"code": "123456"}

    code: Code


class CodeVerdict(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"valid": True}

    valid: bool


class Device(msgspec.Struct):
    id: str
    name: str
    type: Literal["totp"]
    created_at: datetime
    last_used_at: datetime | None


class Devices(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "devices": [
            {
                "id": "dev_01k9x3m7e8c0v2q4r6t8w0y2a4",
                "name": "My phone",
                "type": "totp",
                "created_at": "2026-01-01T12:00:00Z",
                "last_used_at": "2026-01-02T12:00:00Z",
            }
        ]
    }

    devices: list[Device]


class RecoveryCodes(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "recovery_codes": _CODES,
        "message": "Keep these codes safe; all earlier ones are void",
    }

    recovery_codes: list[str]
    message: str


class MfaResetView(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "id": _USER,
        "mfa_enabled": False,
        "message": "Multi-factor authentication is off for this user; they must set it up again",
    }

    id: str
    mfa_enabled: Literal[False]
    message: str
