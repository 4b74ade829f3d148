from typing import Any, ClassVar

from app.domain.identity.accounts.events import UserEvent


class _DeviceEvent(UserEvent):
    example: ClassVar[dict[str, Any]] = {
        **UserEvent.example,
        "device_id": "dev_01k9x3m7e8c0v2q4r6t8w0y2a4",
    }

    device_id: str


class MfaEnabled(_DeviceEvent):
    type: ClassVar[str] = "system.user.mfa_enabled"
    description: ClassVar[str] = "A user's first authenticator was confirmed; codes are now needed"


class MfaDeviceAdded(_DeviceEvent):
    type: ClassVar[str] = "system.user.mfa_device_added"
    description: ClassVar[str] = "A user confirmed another authenticator"


class MfaDeviceRemoved(_DeviceEvent):
    type: ClassVar[str] = "system.user.mfa_device_removed"
    description: ClassVar[str] = "A user removed an authenticator"


class MfaDisabled(UserEvent):
    type: ClassVar[str] = "system.user.mfa_disabled"
    description: ClassVar[str] = "A user turned multi-factor authentication off"


class MfaReset(UserEvent):
    type: ClassVar[str] = "system.user.mfa_reset"
    description: ClassVar[str] = "An administrator removed a user's authenticators"


class RecoveryCodeUsed(UserEvent):
    type: ClassVar[str] = "system.user.recovery_code_used"
    description: ClassVar[str] = "A user used one of their recovery codes"


class RecoveryCodesReplaced(UserEvent):
    type: ClassVar[str] = "system.user.recovery_codes_replaced"
    description: ClassVar[str] = "A user created new recovery codes; the earlier ones are void"
