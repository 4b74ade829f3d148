from typing import Annotated, Any, ClassVar

import msgspec
from litestar import Controller, post
from litestar.params import JSONBody
from msgspec import Meta

from app.domain.forms.definition import recipients
from app.http.dependencies import Tx
from app.kit.views import Done


class ConfirmRecipient(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"token": "the token of the link"}

    token: Annotated[str, Meta(min_length=1, max_length=200)]


class FormRecipientController(Controller):
    path = "/api/v1/public/form-recipients"
    tags = ["Public forms"]

    @post(
        "/confirm",
        summary="Confirm an address for mails about submissions",
        status_code=200,
        public=True,
        idempotent=False,
    )
    async def confirm_form_recipient(self, tx: Tx, data: JSONBody[ConfirmRecipient]) -> Done:
        """With the token of the link that was mailed to the address. From then on, all forms of
        that tenant may mail submissions to it.
        """
        return await recipients.confirm(tx, data.token)
