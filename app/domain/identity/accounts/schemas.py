from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from app.kit.validation import ONE_LINE

Role = Literal["super_admin", "tenant_admin", "agent_developer", "agent_user", "viewer"]
Status = Literal["active", "inactive"]
Email = Annotated[str, Meta(min_length=3, max_length=254)]
Name = Annotated[str, Meta(max_length=100, pattern=ONE_LINE)]
# Above the maximum of the password rule, so that its own message is returned.
Password = Annotated[str, Meta(max_length=1024)]
Secret = Annotated[str, Meta(min_length=1, max_length=4096)]
Code = Annotated[str, Meta(min_length=1, max_length=32)]

_USER = "usr_01k9x3m7e8c0v2q4r6t8w0y2a4"
_TENANT = "ten_01k9x3m7e8c0v2q4r6t8w0y2a4"
_MAILED = "b2s3q1zXn0a5m6K7c8d9e0f1g2h3i4j5k6l7m8n9o0p"
_PAIR = {
    "access_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2ln",
    "refresh_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2ln",
    "token_type": "Bearer",
    "expires_in": 900,
}


class Register(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "email": "ada@example.com",
        "password": "Correct7Horse",
        "first_name": "Ada",
        "last_name": "Lovelace",
    }

    email: Email
    password: Password
    first_name: Name
    last_name: Name
    invitation_token: Secret | UnsetType = UNSET


class Registered(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "id": _USER,
        "email": "ada@example.com",
        "first_name": "Ada",
        "last_name": "Lovelace",
        "role": "agent_user",
        "email_verified": False,
        "message": "Welcome. We sent a mail to ada@example.com to verify the address",
    }

    id: str
    email: str
    first_name: str
    last_name: str
    role: Role
    email_verified: bool
    message: str


class Login(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"email": "ada@example.com", "password": "Correct7Horse"}

    email: Annotated[str, Meta(max_length=254)]
    password: Password


class SignedInUser(msgspec.Struct):
    id: str
    email: str
    role: Role


class TokenPair(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = _PAIR

    access_token: str
    refresh_token: str
    token_type: Literal["Bearer"] = "Bearer"  # noqa: S105  # the scheme's name
    expires_in: int


class SignedIn(TokenPair, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        **_PAIR,
        "user": {"id": _USER, "email": "ada@example.com", "role": "agent_developer"},
    }

    user: SignedInUser


class MfaRequired(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "mfa_required": True,
        "mfa_token": _MAILED,
        "message": "Send this token and a code to POST /auth/mfa/verify within 5 minutes",
    }

    mfa_required: Literal[True] = True
    mfa_token: str
    message: str


class MfaVerify(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"mfa_token": _MAILED, "code": "123456"}

    mfa_token: Secret
    code: Code


class Refresh(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"refresh_token": _PAIR["refresh_token"]}

    refresh_token: Secret


class ChangePassword(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "current_password": "Correct7Horse",
        "new_password": "Battery9Staple",
    }

    current_password: Password
    new_password: Password


class ForgotPassword(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"email": "ada@example.com"}

    email: Annotated[str, Meta(max_length=254)]


class ResetPassword(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"token": _MAILED, "new_password": "Battery9Staple"}

    token: Secret
    new_password: Password


class VerifyEmail(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"token": _MAILED}

    token: Secret


class LookUpInvitation(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"token": _MAILED}

    token: Secret


InvitationState = Literal["open", "used", "expired", "superseded", "revoked"]


class InvitationLink(msgspec.Struct):
    """`superseded` by a newer invitation, or `used` when somebody has an account with the address.
    `inviter` is null when that user was deleted.
    """

    example: ClassVar[dict[str, Any]] = {
        "email": "ada@example.com",
        "inviter": "Grace Hopper",
        "tenant_name": "Acme",
        "role": "agent_developer",
        "state": "open",
        "expires_at": "2026-01-08T12:00:00Z",
    }

    email: str
    inviter: str | None
    tenant_name: str
    role: Role
    state: InvitationState
    expires_at: datetime


class LookUpLink(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"purpose": "reset_password", "token": _MAILED}

    purpose: Literal["verify_email", "reset_password"]
    token: Secret


class MailedLink(msgspec.Struct):
    """`used` also when a later change of the account has ended the link."""

    example: ClassVar[dict[str, Any]] = {"email": "ada@example.com", "state": "open"}

    email: str
    state: Literal["open", "used", "expired"]


class UserView(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "id": _USER,
        "email": "ada@example.com",
        "first_name": "Ada",
        "last_name": "Lovelace",
        "role": "agent_developer",
        "tenant_id": _TENANT,
        "email_verified": True,
        "mfa_enabled": False,
        "status": "active",
        "last_login_at": "2026-01-01T12:00:00Z",
        "created_at": "2026-01-01T12:00:00Z",
        "updated_at": "2026-01-01T12:00:00Z",
    }

    id: str
    email: str
    first_name: str
    last_name: str
    role: Role
    tenant_id: str
    email_verified: bool
    mfa_enabled: bool
    status: Status
    last_login_at: datetime | None
    created_at: datetime
    updated_at: datetime


class Users(msgspec.Struct, omit_defaults=True):
    """Beyond 5,000 users `total` is an estimate, and `estimated` is true."""

    example: ClassVar[dict[str, Any]] = {
        "users": [UserView.example],
        "total": 1,
        "page": 1,
        "per_page": 20,
    }

    users: list[UserView]
    total: int
    page: int
    per_page: int
    estimated: bool = False


class ChangeRole(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"role": "agent_developer"}

    role: Role


class RoleChanged(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "id": _USER,
        "role": "agent_developer",
        "message": "The role is now agent_developer; the user must sign in again",
    }

    id: str
    role: Role
    message: str


class StatusChanged(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "id": _USER,
        "status": "inactive",
        "message": "The user can no longer sign in",
    }

    id: str
    status: Status
    message: str


class Invite(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"email": "grace@example.com", "role": "agent_developer"}

    email: Email
    role: Role
    tenant_id: Annotated[str, Meta(max_length=64)] | UnsetType = UNSET


class InvitationView(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "id": "inv_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "email": "grace@example.com",
        "role": "agent_developer",
        "tenant_id": _TENANT,
        "invitation_token": _MAILED,
        "expires_at": "2026-01-08T12:00:00Z",
    }

    id: str
    email: str
    role: Role
    tenant_id: str
    invitation_token: str
    expires_at: datetime


class InvitationEntry(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "id": "inv_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "email": "grace@example.com",
        "role": "agent_developer",
        "tenant_id": _TENANT,
        "invited_by": _USER,
        "status": "pending",
        "created_at": "2026-01-01T12:00:00Z",
        "expires_at": "2026-01-08T12:00:00Z",
    }

    id: str
    email: str
    role: Role
    tenant_id: str
    invited_by: str | None
    status: Literal["pending", "used", "expired"]
    created_at: datetime
    expires_at: datetime


class SessionView(msgspec.Struct):
    """`device` is a summary of `user_agent`, which the client itself claims. `last_seen_at` is a
    few minutes old at most while the session is in use.
    """

    example: ClassVar[dict[str, Any]] = {
        "id": "ses_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "device": "Firefox on Linux",
        "user_agent": "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
        "ip_address": "192.0.2.7",
        "created_at": "2026-01-01T12:00:00Z",
        "last_seen_at": "2026-01-02T09:30:00Z",
        "expires_at": "2026-01-09T09:00:00Z",
        "is_current": True,
    }

    id: str
    device: str
    user_agent: str | None
    ip_address: str | None
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime
    is_current: bool
