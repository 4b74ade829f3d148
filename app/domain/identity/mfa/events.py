from typing import Annotated

from app.domain.area import example
from app.domain.identity.accounts.events import UserEvent


class _DeviceEvent(UserEvent):
    device_id: Annotated[str, example("dev_01k9x3m7e8c0v2q4r6t8w0y2a4")]


class MfaEnabled(_DeviceEvent):
    """A user's first authenticator was confirmed; codes are now needed."""

    type = "system.user.mfa_enabled"


class MfaDeviceAdded(_DeviceEvent):
    """A user confirmed another authenticator."""

    type = "system.user.mfa_device_added"


class MfaDeviceRemoved(_DeviceEvent):
    """A user removed an authenticator."""

    type = "system.user.mfa_device_removed"


class MfaDisabled(UserEvent):
    """A user turned multi-factor authentication off."""

    type = "system.user.mfa_disabled"


class MfaReset(UserEvent):
    """An administrator removed a user's authenticators."""

    type = "system.user.mfa_reset"


class RecoveryCodeUsed(UserEvent):
    """A user used one of their recovery codes."""

    type = "system.user.recovery_code_used"


class RecoveryCodesReplaced(UserEvent):
    """A user created new recovery codes; the earlier ones are void."""

    type = "system.user.recovery_codes_replaced"
