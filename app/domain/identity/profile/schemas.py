from datetime import datetime
from typing import Annotated, Any, ClassVar

import msgspec
from litestar.datastructures import UploadFile
from msgspec import UNSET, Meta, UnsetType

from app.domain.identity.accounts.schemas import Name, UserView

_AVATAR = "http://127.0.0.1:8000/api/v1/avatars/b2s3q1zXn0a5m6K7c8d9e0f1g2h3i4j5k6l7m8n9o0p"


class ProfileView(UserView):
    example: ClassVar[dict[str, Any]] = {
        **UserView.example,
        "avatar_url": _AVATAR,
        "timezone": "Europe/London",
        "language": "en-GB",
        "has_chosen_language": True,
    }

    avatar_url: str | None
    timezone: str
    language: str
    has_chosen_language: Annotated[bool, Meta(description="False while `language` is the default")]


class UpdateProfile(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "first_name": "Ada",
        "last_name": "Lovelace",
        "timezone": "Europe/London",
        "language": "en-GB",
    }

    first_name: Name | UnsetType = UNSET
    last_name: Name | UnsetType = UNSET
    timezone: Annotated[str, Meta(max_length=64)] | UnsetType = UNSET
    language: Annotated[str, Meta(max_length=35)] | UnsetType = UNSET


class ProfileUpdated(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "id": UserView.example["id"],
        **UpdateProfile.example,
        "updated_at": "2026-01-01T12:00:00Z",
    }

    id: str
    first_name: str
    last_name: str
    timezone: str
    language: str
    updated_at: datetime


class AvatarUpload(msgspec.Struct):
    """A PNG, JPEG or WebP picture of at most 2 MB."""

    avatar: UploadFile


class AvatarSet(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "avatar_url": _AVATAR,
        "message": "The picture is stored",
    }

    avatar_url: str
    message: str
