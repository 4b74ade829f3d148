"""The profile and the picture of the signed-in user."""

import zoneinfo
from contextlib import suppress
from functools import cache

from litestar.datastructures import UploadFile
from msgspec import UNSET, UnsetType

from app.domain.identity.accounts import api as accounts
from app.domain.identity.accounts.events import UserUpdated
from app.domain.platform.events import api as events
from app.domain.platform.files import api as files
from app.domain.platform.history import api as history
from app.http import uploads
from app.kit import clock, validation
from app.kit.errors import Invalid, Unauthorized, UnsupportedFileType
from app.kit.files import FileNotStored, as_stream
from app.kit.views import Done
from app.security import tokens
from app.security.principal import Principal
from app.services import Services
from db.fast import Row
from db.session import ALL_TENANTS, Tx

from . import images
from .errors import AvatarNotFound
from .images import NotAPicture, Picture
from .schemas import AvatarSet, ProfileUpdated, ProfileView, UpdateProfile

AVATAR_MAX_MB = 2
_MAX_SIDE_PIXELS = 512
# Files beside the zones on some machines; their meaning differs by machine.
_NOT_TIME_ZONES = {"localtime", "posixrules", "Factory"}


async def get(tx: Tx, services: Services, principal: Principal) -> ProfileView:
    row = await accounts.find_profile(tx, principal.tenant_id, principal.user_id)
    if row is None:
        raise Unauthorized("This user no longer exists")
    return build_view(services, row)


def build_view(services: Services, row: Row) -> ProfileView:
    """`row` is one of `accounts.find_profile`."""
    values = {name: row[name] for name in ProfileView.__struct_fields__ if name != "avatar_url"}
    return ProfileView(**values, avatar_url=_build_avatar_url(services, row["avatar_key"]))


async def update(tx: Tx, principal: Principal, data: UpdateProfile) -> ProfileUpdated:
    problems = []
    if data.timezone is not UNSET and data.timezone not in _list_time_zones():
        problems.append(("timezone", "is not an IANA time zone, like Europe/London"))
    language = data.language
    if language is not UNSET:
        try:
            language = _normalize_language(language)
        except ValueError:
            problems.append(("language", "is not a language tag, like en or pt-BR"))
    Invalid.check(problems)
    values = (_strip_name(data.first_name), _strip_name(data.last_name), data.timezone, language)
    columns = tuple(None if value is UNSET else value for value in values)
    row = await accounts.update_profile(
        tx, principal.tenant_id, principal.user_id, columns, clock.now()
    )
    if row is None:
        raise Unauthorized("This user no longer exists")
    _note_changes(tx, principal, row)
    await _emit_updated(tx, principal, list(validation.set_fields(data)))
    return ProfileUpdated(**{name: row[name] for name in ProfileUpdated.__struct_fields__})


def _note_changes(tx: Tx, principal: Principal, row: Row) -> None:
    names = UpdateProfile.__struct_fields__
    history.note(
        tx,
        "user",
        principal.user_id,
        row["email"],
        tenant_id=principal.tenant_id,
        changes={name: (row[f"old_{name}"], row[name]) for name in names},
    )


def _strip_name(text: str | UnsetType) -> str | UnsetType:
    return text if text is UNSET else text.strip()


@cache
def _list_time_zones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones() - _NOT_TIME_ZONES)


def _normalize_language(text: str) -> str:
    """Returns the tag in its standard form. Raises ValueError when it is not valid."""
    import langcodes

    if "_" in text or not langcodes.tag_is_valid(text):
        raise ValueError(text)
    return langcodes.standardize_tag(text)


async def set_avatar(
    tx: Tx, services: Services, principal: Principal, upload: UploadFile
) -> AvatarSet:
    """Stores the file before the row refers to it, and deletes the old file after the commit."""
    picture = await _redraw_picture(await uploads.read("avatar", upload, AVATAR_MAX_MB))
    key = tokens.new_secret()
    stored = await files.store(
        services,
        principal.tenant_id,
        as_stream(picture.content),
        filename="avatar",
        purpose="avatar",
        max_bytes=len(picture.content),
        key=accounts.picture_path(principal.tenant_id, key),
        owner_id=principal.user_id,
    )
    try:
        await _replace_avatar(tx, services, principal, key, picture.media_type)
        await files.record(tx, principal.tenant_id, stored, created_by=principal.user_id)
    except BaseException:
        await tx.rollback()
        await files.discard(services, [stored.key])
        raise
    await _emit_updated(tx, principal, ["avatar"])
    return AvatarSet(_build_avatar_url(services, key) or "", "The picture is stored")


async def remove_avatar(tx: Tx, services: Services, principal: Principal) -> Done:
    await _replace_avatar(tx, services, principal, None, None)
    await _emit_updated(tx, principal, ["avatar"])
    return Done("The picture is removed")


async def _replace_avatar(
    tx: Tx, services: Services, principal: Principal, key: str | None, media_type: str | None
) -> None:
    old = await accounts.set_avatar(
        tx, principal.tenant_id, principal.user_id, key, media_type, clock.now()
    )
    # Before the new one is counted.
    await accounts.delete_picture(tx, services, principal.tenant_id, old)


async def _emit_updated(tx: Tx, principal: Principal, changed: list[str]) -> None:
    if changed:
        updated = UserUpdated(principal.user_id, changed)
        await events.emit(tx, updated, tenant_id=principal.tenant_id)


async def _redraw_picture(content: bytes) -> Picture:
    try:
        return await images.redraw(content, _MAX_SIDE_PIXELS)
    except NotAPicture as error:
        raise UnsupportedFileType(f"avatar {error}", details={"avatar": str(error)}) from None


async def load_avatar(services: Services, key: str) -> Picture:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        row = await accounts.find_avatar(tx, key)
    if row is not None:
        with suppress(FileNotStored):
            path = accounts.picture_path(row["tenant_id"], key)
            return Picture(await services.files.read(path), row["avatar_type"])
    raise AvatarNotFound("This picture does not exist")


def _build_avatar_url(services: Services, key: str | None) -> str | None:
    return f"{services.settings.public_url}/api/v1/avatars/{key}" if key else None
