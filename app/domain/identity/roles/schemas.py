from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from app.domain.identity.accounts.schemas import Role


class PermissionView(msgspec.Struct):
    """`instance_wide` permissions reach every tenant; only super_admin can have them."""

    key: str
    description: str
    category: str
    instance_wide: bool


class Permissions(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "permissions": [
            {
                "key": "agents:chat",
                "description": "Chat with agents",
                "category": "agents",
                "instance_wide": False,
            }
        ]
    }

    permissions: list[PermissionView]


class RolePermissions(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "role": "viewer",
        "permissions": ["agents:read", "forms:read"],
    }

    role: Role
    permissions: list[str]


class SetPermissions(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"permissions": ["agents:read", "forms:read"]}

    permissions: Annotated[list[Annotated[str, Meta(max_length=100)]], Meta(max_length=1000)]


class PermissionsSet(RolePermissions):
    example: ClassVar[dict[str, Any]] = {
        **RolePermissions.example,
        "message": "The permissions apply from the next request on",
    }

    message: str
