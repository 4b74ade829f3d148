from typing import Any, ClassVar

from app.domain.area import Event


class MfaEnabled(Event):
    type: ClassVar[str] = "system.user.mfa_enabled"
    description: ClassVar[str] = "A user's first authenticator was confirmed; codes are now needed"
    example: ClassVar[dict[str, Any]] = {
        "user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "device_id": "dev_01k9x3m7e8c0v2q4r6t8w0y2a4",
    }

    user_id: str
    device_id: str


class MfaDeviceAdded(Event):
    type: ClassVar[str] = "system.user.mfa_device_added"
    description: ClassVar[str] = "A user confirmed another authenticator"
    example: ClassVar[dict[str, Any]] = {
        "user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "device_id": "dev_01k9x3m7e8c0v2q4r6t8w0y2a4",
    }

    user_id: str
    device_id: str


class MfaDeviceRemoved(Event):
    type: ClassVar[str] = "system.user.mfa_device_removed"
    description: ClassVar[str] = "A user removed an authenticator"
    example: ClassVar[dict[str, Any]] = {
        "user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "device_id": "dev_01k9x3m7e8c0v2q4r6t8w0y2a4",
    }

    user_id: str
    device_id: str


class MfaDisabled(Event):
    type: ClassVar[str] = "system.user.mfa_disabled"
    description: ClassVar[str] = "A user turned multi-factor authentication off"
    example: ClassVar[dict[str, Any]] = {"user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4"}

    user_id: str


class MfaReset(Event):
    type: ClassVar[str] = "system.user.mfa_reset"
    description: ClassVar[str] = "An administrator removed a user's authenticators"
    example: ClassVar[dict[str, Any]] = {"user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4"}

    user_id: str


class RecoveryCodeUsed(Event):
    type: ClassVar[str] = "system.user.recovery_code_used"
    description: ClassVar[str] = "A user used one of their recovery codes"
    example: ClassVar[dict[str, Any]] = {"user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4"}

    user_id: str


class RecoveryCodesReplaced(Event):
    type: ClassVar[str] = "system.user.recovery_codes_replaced"
    description: ClassVar[str] = "A user made new recovery codes; the earlier ones are void"
    example: ClassVar[dict[str, Any]] = {"user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4"}

    user_id: str
