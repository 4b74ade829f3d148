"""Every event type there is. Each area defines its own beside its rules; this is the list."""

from typing import Final

from app.domain.accounts import events as accounts
from app.domain.events import events as own
from app.domain.events.event import Event
from app.domain.mfa import events as mfa
from app.domain.roles import events as roles
from app.domain.tenants import events as tenants

CATALOGUE: Final[dict[str, type[Event]]] = {
    event.type: event
    for event in (
        tenants.TenantCreated,
        tenants.TenantUpdated,
        accounts.UserInvited,
        accounts.InvitationRevoked,
        accounts.UserRegistered,
        accounts.EmailVerified,
        accounts.UserSignedIn,
        accounts.SignInBlocked,
        accounts.UserSignedOut,
        accounts.SessionRevoked,
        accounts.PasswordResetRequested,
        accounts.PasswordChanged,
        accounts.RoleChanged,
        accounts.UserDeactivated,
        accounts.UserReactivated,
        accounts.UserDeleted,
        mfa.MfaEnabled,
        mfa.MfaDeviceAdded,
        mfa.MfaDeviceRemoved,
        mfa.MfaDisabled,
        mfa.MfaReset,
        mfa.RecoveryCodeUsed,
        mfa.RecoveryCodesReplaced,
        roles.RolePermissionsChanged,
        own.WorkDead,
    )
}
