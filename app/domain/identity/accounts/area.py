from typing import Final

from app.domain.area import Area
from app.security.permissions import Permission
from db.retention import RetentionRule
from db.storage_quota import UncountedTable

from .events import (
    EmailVerified,
    InvitationRevoked,
    PasswordChanged,
    PasswordResetRequested,
    RoleChanged,
    SessionEndedByUser,
    SessionRevoked,
    SignInBlocked,
    UserDeactivated,
    UserDeleted,
    UserInvited,
    UserReactivated,
    UserRegistered,
    UserSignedIn,
    UserSignedOut,
    UserUpdated,
)

AREA: Final = Area(
    name="accounts",
    events=(
        UserInvited,
        InvitationRevoked,
        UserRegistered,
        EmailVerified,
        UserSignedIn,
        SignInBlocked,
        UserSignedOut,
        SessionRevoked,
        SessionEndedByUser,
        PasswordResetRequested,
        PasswordChanged,
        RoleChanged,
        UserUpdated,
        UserDeactivated,
        UserReactivated,
        UserDeleted,
    ),
    permissions=(Permission("admin:users", "Manage users"),),
    retention=(
        RetentionRule(
            "sessions", "t.expires_at < now() - interval '30 days'", order_by="t.expires_at"
        ),
        RetentionRule(
            "invitations", "t.expires_at < now() - interval '90 days'", order_by="t.expires_at"
        ),
        RetentionRule(
            "one_time_tokens", "t.expires_at < now() - interval '1 day'", order_by="t.expires_at"
        ),
    ),
    tables=(
        UncountedTable("users", "one for each person"),
        UncountedTable("sessions", "small, deleted 30 days after it expires"),
        UncountedTable("one_time_tokens", "small, deleted a day after it expires"),
        UncountedTable("invitations", "small, deleted 90 days after it expires"),
    ),
)
