from typing import Final

from app.domain.area import Area
from db.storage_quota import UncountedTable

from .events import (
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
    tables=(
        UncountedTable("mfa_devices", "at most 10 of a user"),
        UncountedTable("recovery_codes", "ten of a user"),
    ),
)
