from typing import Final

from app.domain.area import Area
from app.domain.identity.mfa.events import (
    MfaDeviceAdded,
    MfaDeviceRemoved,
    MfaDisabled,
    MfaEnabled,
    MfaReset,
    RecoveryCodesReplaced,
    RecoveryCodeUsed,
)
from db.storage_quota import UncountedTable

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
