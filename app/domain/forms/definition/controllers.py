from typing import Annotated, Any, ClassVar

import msgspec
from litestar import Controller, delete, get, post, put
from litestar.params import JSONBody
from msgspec import Meta

from app.http.dependencies import Context, Id, Page, Principal, Services, Tx
from app.http.paging import OfStatus, Search, Sort
from app.http.records import Record, lock_row
from app.kit.paging import Paged
from app.kit.views import Data, Done

from . import options, recipients, service
from .fields.registry import FIELD_TYPES
from .schemas import (
    CreateForm,
    DuplicatedForm,
    FieldTypeView,
    FormOption,
    FormSummary,
    FormVersionSummary,
    FormVersionView,
    FormView,
    PublishedForm,
    Status,
    UpdateForm,
)

_FORM = Record(lock_row("forms", id="form_id"), "get_form")


class FormController(Controller):
    path = "/api/v1/forms"
    tags = ["Forms"]

    @get(summary="List forms", needs="forms:read")
    async def list_forms(
        self,
        context: Context,
        page_in: Page,
        search: Search = None,
        status: OfStatus[Status] = None,
        sort: Sort = None,
    ) -> Paged[FormSummary]:
        """`search` looks in names, descriptions and slugs. Sort by name, status, created_at,
        updated_at or published_at; by default the newest first. Callers without submissions:read
        get null as `submission_count`.
        """
        return await service.list_page(context, page_in, search=search, status=status, sort=sort)

    @post(summary="Create a form", stores=True, needs="forms:write")
    async def create_form(
        self, tx: Tx, services: Services, principal: Principal, data: JSONBody[CreateForm]
    ) -> Data[FormView]:
        """It starts as a draft. `GET /api/v1/form-field-types` has the validation options of each
        type of field. A `pattern` is a regular expression of RE2, without lookaheads. A link is
        mailed to an address in `settings.notifications` that must be confirmed, at most 5 times to
        a mailbox within 15 minutes.
        """
        return Data(await service.create(tx, services, principal, data))

    @get("/{form_id:str}", summary="Get a form", needs="forms:read")
    async def get_form(self, tx: Tx, principal: Principal, form_id: Id) -> Data[FormView]:
        """With the fields of the newest version. Callers without submissions:read get null as
        `stats`, and those without forms:write no address in `settings.notifications`.
        """
        return Data(await service.get(tx, principal, form_id))

    @get("/slug/{slug:str}", summary="Get a form by its slug", needs="forms:read")
    async def get_form_by_slug(self, tx: Tx, principal: Principal, slug: Id) -> Data[FormView]:
        """The slug is the form's name in public addresses."""
        return Data(await service.get_by_slug(tx, principal, slug))

    @put("/{form_id:str}", summary="Change a form", stores=True, needs="forms:write", record=_FORM)
    async def update_form(
        self,
        tx: Tx,
        services: Services,
        principal: Principal,
        form_id: Id,
        data: JSONBody[UpdateForm],
    ) -> Data[FormView]:
        """Any subset of the fields. A change of `fields` makes a new version once the form was
        published; existing submissions keep the fields that they were made with. A form has at most
        200 versions: 409 `too_many_versions`.
        """
        return Data(await service.update(tx, services, principal, form_id, data))

    @delete("/{form_id:str}", summary="Delete a form", needs="forms:delete")
    async def delete_form(self, tx: Tx, form_id: Id) -> None:
        """Deletes all its submissions and their files as well, and what they caused: events with
        their deliveries, notifications, and executions of workflows. Rows of data tables stay, as
        do the conversations, tool runs and approvals of workflows until their retention ends.
        """
        await service.delete(tx, form_id)

    @post("/{form_id:str}/publish", summary="Publish a form", needs="forms:write", status_code=200)
    async def publish_form(self, tx: Tx, form_id: Id) -> Data[PublishedForm]:
        """From draft or archived. Visitors and users can submit it from now on."""
        return Data(await service.publish(tx, form_id))

    @post(
        "/{form_id:str}/unpublish",
        summary="Withdraw a form",
        needs="forms:write",
        status_code=200,
        record=_FORM,
    )
    async def unpublish_form(self, tx: Tx, principal: Principal, form_id: Id) -> Data[FormView]:
        """It becomes a draft again and accepts no submissions."""
        return Data(await service.unpublish(tx, principal, form_id))

    @post(
        "/{form_id:str}/archive",
        summary="Archive a form",
        needs="forms:write",
        status_code=200,
        record=_FORM,
    )
    async def archive_form(self, tx: Tx, principal: Principal, form_id: Id) -> Data[FormView]:
        """It accepts no submissions; existing ones are kept."""
        return Data(await service.archive(tx, principal, form_id))

    @post("/{form_id:str}/duplicate", summary="Copy a form", stores=True, needs="forms:write")
    async def duplicate_form(
        self, tx: Tx, principal: Principal, form_id: Id
    ) -> Data[DuplicatedForm]:
        """A draft with the same fields and settings, a new slug and no submissions."""
        return Data(await service.duplicate(tx, principal, form_id))

    @get("/{form_id:str}/versions", summary="List versions of a form", needs="forms:read")
    async def list_form_versions(
        self, tx: Tx, page_in: Page, form_id: Id
    ) -> Paged[FormVersionSummary]:
        """The newest first."""
        return await service.list_versions(tx, form_id, page_in)

    @get(
        "/{form_id:str}/versions/{version:str}",
        summary="Get a version of a form",
        needs="forms:read",
    )
    async def get_form_version(self, tx: Tx, form_id: Id, version: Id) -> Data[FormVersionView]:
        """With its fields."""
        return Data(await service.get_version(tx, form_id, version))

    @get(
        "/{form_id:str}/fields/{field_id:str}/options",
        summary="List the options of a field",
        needs="forms:read",
    )
    async def list_field_options(
        self, services: Services, principal: Principal, form_id: Id, field_id: Id
    ) -> Data[list[FormOption]]:
        """Of the newest version; at most 1,000, from the field's data table if it has one."""
        async with services.db.tx(principal.scope, autocommit=True) as tx:
            tenant_id, definition = await service.load_definition(tx, form_id)
        return Data(await options.list_options(services, tenant_id, definition, field_id))


class FormFieldTypeController(Controller):
    path = "/api/v1/form-field-types"
    tags = ["Forms"]

    @get(summary="List field types", needs="forms:read")
    async def list_field_types(self) -> Data[list[FieldTypeView]]:
        """The JSON Schema of the validation options of each type."""
        return Data(
            [
                FieldTypeView(
                    kind.name,
                    kind.description,
                    kind.has_value,
                    kind.has_options,
                    msgspec.json.schema(kind.rules),
                )
                for kind in FIELD_TYPES.values()
            ]
        )


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
