from litestar import Controller, Response, delete, get, post, put
from litestar.params import JSONBody, MultipartBody

from app.http.dependencies import Id, Principal, Services, Tx
from app.http.records import Record, lock_row
from app.http.uploads import MEGABYTE
from app.kit.views import Done

from . import service
from .schemas import AvatarSet, AvatarUpload, ProfileUpdated, ProfileView, UpdateProfile

_CACHE_CONTROL = "public, max-age=86400, immutable"


class ProfileController(Controller):
    path = "/api/v1/profile"
    tags = ["Profile"]
    opt = {"own": True}

    @get(summary="Get my profile")
    async def get_profile(self, tx: Tx, services: Services, principal: Principal) -> ProfileView:
        return await service.get(tx, services, principal)

    @put(summary="Change my profile", record=Record(lock_row("users", id="user_id")))
    async def update_profile(
        self, tx: Tx, principal: Principal, data: JSONBody[UpdateProfile]
    ) -> ProfileUpdated:
        """Any subset of the fields."""
        return await service.update(tx, principal, data)

    @post(
        "/avatar",
        summary="Set my picture",
        status_code=200,
        errors=(415,),
        upload=True,
        verified=True,
        idempotent=False,
        request_max_body_size=5 * MEGABYTE,
    )
    async def set_avatar(
        self, tx: Tx, services: Services, principal: Principal, data: MultipartBody[AvatarUpload]
    ) -> AvatarSet:
        """A PNG, JPEG or WebP of at most 2 MB; the type is detected from the content. The picture
        is redrawn, at most 512 pixels wide and high, without the file's metadata.
        """
        return await service.set_avatar(tx, services, principal, data.avatar)

    @delete("/avatar", summary="Remove my picture", status_code=200)
    async def remove_avatar(self, tx: Tx, services: Services, principal: Principal) -> Done:
        return await service.remove_avatar(tx, services, principal)


class AvatarController(Controller):
    path = "/api/v1/avatars"
    tags = ["Profile"]

    @get("/{key:str}", summary="Get a picture", public=True, media_type="image/png")
    async def get_avatar(self, services: Services, key: Id) -> Response[bytes]:
        """Needs no token, since browsers load pictures without one. The address cannot be guessed
        and changes with every new picture.
        """
        picture = await service.load_avatar(services, key)
        return Response(
            picture.content,
            media_type=picture.media_type,
            headers={
                "cache-control": _CACHE_CONTROL,
                "content-disposition": "attachment",
                "cross-origin-resource-policy": "cross-origin",
            },
        )
