from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

Role = Literal["super_admin", "tenant_admin", "agent_developer", "agent_user", "viewer"]
Email = Annotated[str, Meta(min_length=3, max_length=254)]
_USER = "usr_01k9x3m7e8c0v2q4r6t8w0y2a4"
_TENANT = "ten_01k9x3m7e8c0v2q4r6t8w0y2a4"


class Login(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"email": "ada@example.com", "password": "Correct7Horse"}

    email: Annotated[str, Meta(max_length=254)]
    password: Annotated[str, Meta(max_length=1024)]


class SignedInUser(msgspec.Struct):
    id: str
    email: str
    role: Role


class SignedIn(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "access_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2ln",
        "refresh_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2ln",
        "token_type": "Bearer",
        "expires_in": 900,
        "user": {"id": _USER, "email": "ada@example.com", "role": "agent_developer"},
    }

    access_token: str
    refresh_token: str
    token_type: Literal["Bearer"]
    expires_in: int
    user: SignedInUser


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
    status: Literal["active", "inactive"]
    last_login_at: datetime | None
    created_at: datetime
    updated_at: datetime


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
        "invitation_token": "b2s3q1zXn0a5m6K7c8d9e0f1g2h3i4j5k6l7m8n9o0p",
        "expires_at": "2026-01-08T12:00:00Z",
    }

    id: str
    email: str
    role: Role
    tenant_id: str
    invitation_token: str
    expires_at: datetime
