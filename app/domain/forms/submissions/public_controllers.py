"""Routes for visitors, without a sign-in."""

import html
from functools import partial
from typing import Annotated

from litestar import Controller, HttpMethod, Response, get, post, route
from litestar.params import HeaderParameter, JSONBody

from app.domain.forms.definition.api import live, options
from app.domain.forms.definition.schemas import FormOption
from app.http import cors, idempotency, multipart
from app.http.authorization import caller_of
from app.http.dependencies import HttpRequest, Id, Services
from app.kit.views import Data
from db.session import Tx

from . import drafts, submitting, uploads
from .admission import admit, describe_origin
from .analytics import ViewCounter
from .public_schemas import FormEmbed, PublicForm, build_form
from .submission_schemas import (
    AcceptedSubmission,
    DraftView,
    PublicSubmission,
    PublicSubmissionData,
    SavedDraftView,
    SaveDraft,
    SubmitPublicForm,
    UploadedFile,
)
from .submitting import Answers
from .uploads import Sender

_FILE = "file"
# Room for the longest answers of a form with many fields.
_MAX_BODY_BYTES = 1024 * 1024

_MAX_DRAFT_BYTES = 1024 * 1024
Token = Annotated[
    str,
    HeaderParameter(
        name="X-Draft-Token", min_length=1, max_length=100, description="The token of the draft"
    ),
]


class PublicFormController(Controller):
    """Any web site may use these routes; each is for one published form."""

    path = "/api/v1/public/forms/{slug:str}"
    tags = ["Public forms"]
    opt = {"public": True, "tenant_pays": True}

    @get(summary="Get a form", cost="read")
    async def get_public_form(
        self, request: HttpRequest, services: Services, slug: Id
    ) -> Data[PublicForm]:
        """What a page needs to show the form. It counts as a view."""
        form = await admit(request, slug)
        definition = await live.load_definition(services, form)
        services.get(ViewCounter).add_view(form.tenant_id, form.id)
        return Data(build_form(form, [field.definition for field in definition.fields]))

    @post(
        "/submit",
        summary="Submit a form as a visitor",
        cost="write",
        idempotent="long_running",
        errors=(400, 409),
        request_max_body_size=_MAX_BODY_BYTES,
    )
    async def submit_public_form(
        self, request: HttpRequest, services: Services, slug: Id, data: JSONBody[SubmitPublicForm]
    ) -> PublicSubmissionData:
        """`data` has the answers by the ids of fields. Answers that are not valid: 400, with a
        message for each field in `details.errors`. Answers to fields that a conditional hides are
        dropped. Too many from one address: 429 `rate_limit_exceeded`. After the form's last
        submission or its end: 409 `form_closed`.
        """
        form = await admit(request, slug, action="submit", is_published=False)

        def build_answer(accepted: AcceptedSubmission) -> PublicSubmissionData:
            view = PublicSubmission(accepted.submission_id, accepted.status)
            return PublicSubmissionData(view, form.settings.success_message)

        async def finish(tx: Tx, accepted: AcceptedSubmission) -> None:
            if data.draft_token is not None:
                await drafts.delete(tx, form, data.draft_token)
            await idempotency.store_answer(request, tx, build_answer(accepted))

        sent = Answers(
            data=data.data,
            metadata=data.metadata,
            version=data.version,
            started_at=data.started_at,
            is_suspicious=bool(data.honeypot),
        )
        has_more = data.draft_token is not None or idempotency.HEADER in request.headers
        accepted = await submitting.submit(
            services, form, sent, describe_origin(request), finish if has_more else None
        )
        return build_answer(accepted)

    @post(
        "/upload",
        summary="Upload a file to a form",
        cost="write",
        streamed_file=_FILE,
        streamed_texts=(uploads.FIELD_NAME,),
        idempotent="streamed",
        errors=(400, 408, 409, 415),
    )
    async def upload_form_file(
        self, request: HttpRequest, services: Services, slug: Id
    ) -> Data[UploadedFile]:
        """A file for one field; `file_id` is then the answer to that field. At most 10 MB, unless
        the field's `max_size_mb` says otherwise: 413 `file_too_large`. The content determines its
        type: 415 `unsupported_file_type`. A file without a submission is deleted after 24 hours. An
        address may send 3 files at a time, and 200 MB to one form within a day, unless configured
        otherwise; files without a submission may take a tenth of the tenant's storage: 429
        `too_many_uploads`. An upload with less than 8 KiB per second: 408 `request_timeout`.
        """
        form = await admit(request, slug, action="upload", is_published=False)
        open_upload = partial(multipart.open_file, request, _FILE, (uploads.FIELD_NAME,))
        store_answer = partial(idempotency.store_answer, request)
        sender = Sender(caller_of(request).address, request.content_length)
        return await uploads.upload(services, form, sender, open_upload, store_answer)

    @get("/embed", summary="Get the embed code of a form", cost="read")
    async def get_form_embed_code(
        self, request: HttpRequest, services: Services, slug: Id
    ) -> Data[FormEmbed]:
        """HTML that shows the form on any page."""
        form = await admit(request, slug)
        base, name = html.escape(services.settings.public_url), html.escape(form.slug)
        script = f'<script async src="{base}/embed/form.js" data-form="{name}"></script>'
        frame = (
            f'<iframe src="{base}/f/{name}" title="{html.escape(form.name)}" '
            'width="100%" height="600" style="border:0"></iframe>'
        )
        return Data(FormEmbed(script, frame))

    @get(
        "/fields/{field_id:str}/options", summary="List the options of a public field", cost="read"
    )
    async def list_public_field_options(
        self, request: HttpRequest, services: Services, slug: Id, field_id: Id
    ) -> Data[list[FormOption]]:
        """At most 1,000, from the field's data table if it has one."""
        form = await admit(request, slug)
        definition = await live.load_definition(services, form)
        found = await options.list_options(services, form.tenant_id, definition, field_id)
        return Data(found)

    # The name must sort first in this class: litestar adds its own OPTIONS handler to a path that
    # has none yet.
    @route(
        ["/", "/submit", "/upload", "/embed", "/fields/{field_id:str}/options"],
        http_method=[HttpMethod.OPTIONS],
        include_in_schema=False,
        status_code=204,
    )
    async def answer_preflight(self, request: HttpRequest, slug: Id) -> Response[None]:
        """Any site may use a public form; whether it exists is answered to the request itself."""
        del slug
        return Response(None, status_code=204, headers=cors.preflight_headers(request))


class FormDraftController(Controller):
    path = "/api/v1/public/forms/{slug:str}/drafts"
    tags = ["Public forms"]
    opt = {"public": True, "tenant_pays": True}

    @post(
        summary="Save a draft",
        cost="write",
        idempotent="long_running",
        errors=(400, 409),
        request_max_body_size=_MAX_DRAFT_BYTES,
    )
    async def save_form_draft(
        self, request: HttpRequest, services: Services, slug: Id, data: JSONBody[SaveDraft]
    ) -> Data[SavedDraftView]:
        """Saves answers to continue later, with the link or the token, for 30 days. Saving again
        with the `token` replaces the draft and keeps it for another 30 days.
        """
        form = await admit(request, slug, action="draft")

        async def store(tx: Tx, saved: SavedDraftView) -> None:
            await idempotency.store_answer(request, tx, Data(saved))

        return Data(await drafts.save(services, form, data, store))

    @get(summary="Get a draft", cost="read")
    async def get_form_draft(
        self, request: HttpRequest, services: Services, slug: Id, token: Token
    ) -> Data[DraftView]:
        """The token is a header, so that no log of addresses has it."""
        form = await admit(request, slug)
        return Data(await drafts.get(services, form, token))

    # The name must sort first in this class: litestar adds its own OPTIONS handler to a path that
    # has none yet.
    @route(["/"], http_method=[HttpMethod.OPTIONS], include_in_schema=False, status_code=204)
    async def answer_preflight(self, request: HttpRequest) -> Response[None]:
        return Response(None, status_code=204, headers=cors.preflight_headers(request))
