"""One's own profile and picture."""

import zoneinfo
from functools import cache, partial

import langcodes
from litestar.datastructures import UploadFile
from msgspec import UNSET, UnsetType

from app.domain.accounts.events import UserUpdated
from app.domain.events import service as events
from app.domain.profile import queries
from app.domain.profile.schemas import (
    AvatarSet,
    ProfileUpdated,
    ProfileView,
    UpdateProfile,
)
from app.http import bodies, uploads
from app.http.answers import Done
from app.http.errors import Invalid, NotFound, Unauthorized, UnsupportedFileType
from app.kit import clock, images
from app.kit.files import FileNotStored
from app.kit.images import NotAPicture, Picture
from app.parts import Parts
from app.security import tokens
from app.security.principal import Principal
from db.session import ALL_TENANTS, Tx

AVATAR_MAX_MB = 2
_AVATAR_SIDE = 512
_FOLDER = "avatars/"
# Some machines' files beside the zones, which mean something else on each.
_NO_ZONES = {"localtime", "posixrules", "Factory"}


class AvatarNotFound(NotFound):
    code = "avatar_not_found"


async def get(tx: Tx, parts: Parts, principal: Principal) -> ProfileView:
    row = await queries.one(tx, principal.tenant_id, principal.user_id)
    if row is None:
        raise Unauthorized("This user no longer exists")
    values = {name: row[name] for name in ProfileView.__struct_fields__ if name != "avatar_url"}
    return ProfileView(**values, avatar_url=_url(parts, row["avatar_key"]))


async def update(tx: Tx, principal: Principal, data: UpdateProfile) -> ProfileUpdated:
    problems = {}
    if data.timezone is not UNSET and data.timezone not in _zones():
        problems["timezone"] = "is not an IANA time zone, like Europe/London"
    language = data.language
    if language is not UNSET:
        try:
            language = _language(language)
        except ValueError:
            problems["language"] = "is not a language tag, like en or pt-BR"
    if problems:
        raise Invalid.fields(problems)
    given = (_name(data.first_name), _name(data.last_name), data.timezone, language)
    values = tuple(None if value is UNSET else value for value in given)
    row = await queries.update(tx, principal.tenant_id, principal.user_id, values, clock.now())
    if row is None:
        raise Unauthorized("This user no longer exists")
    await _tell(tx, principal, list(bodies.given(data)))
    return ProfileUpdated(**{name: row[name] for name in ProfileUpdated.__struct_fields__})


def _name(text: str | UnsetType) -> str | UnsetType:
    return text if text is UNSET else text.strip()


@cache
def _zones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones() - _NO_ZONES)


def _language(text: str) -> str:
    """The tag in its usual form."""
    if "_" in text or not langcodes.tag_is_valid(text):
        raise ValueError(text)
    return langcodes.standardize_tag(text)


async def set_avatar(tx: Tx, parts: Parts, principal: Principal, upload: UploadFile) -> AvatarSet:
    """The file is durable before the row names it; the picture before it goes after the commit."""
    picture = await _picture(await uploads.read("avatar", upload, AVATAR_MAX_MB))
    key = tokens.new_secret()
    await parts.files.put(_FOLDER + key, picture.content)
    await _replace(tx, parts, principal, key, picture.media_type)
    return AvatarSet(_url(parts, key) or "", "The picture is stored")


async def remove_avatar(tx: Tx, parts: Parts, principal: Principal) -> Done:
    await _replace(tx, parts, principal, None, None)
    return Done("The picture is removed")


async def _replace(
    tx: Tx, parts: Parts, principal: Principal, key: str | None, media_type: str | None
) -> None:
    old = await queries.set_avatar(
        tx, principal.tenant_id, principal.user_id, key, media_type, clock.now()
    )
    forget_picture(tx, parts, old)
    await _tell(tx, principal, ["avatar"])


async def _tell(tx: Tx, principal: Principal, changed: list[str]) -> None:
    if changed:
        updated = UserUpdated(principal.user_id, changed)
        await events.emit(tx, updated, tenant_id=principal.tenant_id)


def forget_picture(tx: Tx, parts: Parts, key: str | None) -> None:
    """Nobody finds it once the row is committed; then the file goes, too."""
    if key is not None:
        tx.after_commit.append(partial(parts.files.delete, _FOLDER + key))


async def _picture(content: bytes) -> Picture:
    try:
        return await images.redrawn(content, _AVATAR_SIDE)
    except NotAPicture as problem:
        raise UnsupportedFileType(f"avatar {problem}", details={"avatar": str(problem)}) from None


async def avatar(parts: Parts, key: str) -> Picture:
    async with parts.db.tx(ALL_TENANTS, read_only=True) as tx:
        media_type = await queries.avatar_type(tx, key)
    if media_type is None:
        raise AvatarNotFound("There is no such picture")
    try:
        return Picture(await parts.files.read(_FOLDER + key), media_type)
    except FileNotStored:
        raise AvatarNotFound("There is no such picture") from None


def _url(parts: Parts, key: str | None) -> str | None:
    return f"{parts.settings.public_url}/api/v1/avatars/{key}" if key else None
