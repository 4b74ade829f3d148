from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from app.domain.identity.profile.schemas import ProfileView


class ConsoleSession(msgspec.Struct, kw_only=True):
    """The refresh token is in a cookie that no script can read."""

    example: ClassVar[dict[str, Any]] = {
        "access_token": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.e30.c2lnbmF0dXJl",
        "token_type": "Bearer",
        "expires_in": 3600,
        "user": ProfileView.example,
        "permissions": ["agents:read", "agents:chat"],
    }

    access_token: str
    token_type: Literal["Bearer"] = "Bearer"  # noqa: S105  # the scheme's name
    expires_in: int
    user: ProfileView
    permissions: Annotated[list[str], Meta(description="What the role of the user may do")]
