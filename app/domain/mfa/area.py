from typing import Final

from app.domain.area import Area
from app.domain.mfa.events import (
    MfaDeviceAdded,
    MfaDeviceRemoved,
    MfaDisabled,
    MfaEnabled,
    MfaReset,
    RecoveryCodesReplaced,
    RecoveryCodeUsed,
)

AREA: Final = Area(
    name="mfa",
    events=(
        MfaEnabled,
        MfaDeviceAdded,
        MfaDeviceRemoved,
        MfaDisabled,
        MfaReset,
        RecoveryCodeUsed,
        RecoveryCodesReplaced,
    ),
)
