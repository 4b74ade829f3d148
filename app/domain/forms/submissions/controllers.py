from typing import Annotated

from litestar import Controller, delete, get, patch, post
from litestar.params import JSONBody, QueryParameter
from litestar.response import Stream

from app.domain.forms.definition.api import live
from app.domain.platform.files.api import Conditions
from app.http import idempotency
from app.http.authorization import caller_of
from app.http.dependencies import HttpRequest, Id, Page, Principal, Services, Tx
from app.http.paging import TIME, OfStatus, Search, parse_time
from app.http.records import Record, lock_row
from app.kit import filenames
from app.kit.paging import Paged
from app.kit.views import Data
from db.fast import tenant_of
from db.session import Tx as Transaction

from . import analytics, export, submissions, submitting, uploads
from .analytics_schemas import FormAnalytics
from .submission_queries import SubmissionFilter
from .submission_schemas import (
    AcceptedSubmission,
    AcceptedSubmissionData,
    SubmissionStatus,
    SubmissionSummary,
    SubmissionView,
    SubmitForm,
    UpdateSubmission,
)
from .submitting import Answers, Origin

After = Annotated[str | None, QueryParameter(name="after", schema_extra=TIME)]
Before = Annotated[str | None, QueryParameter(name="before", schema_extra=TIME)]
ResumeAfter = Annotated[
    str | None,
    QueryParameter(
        max_length=100, description="The submission_id of the last row that you already have"
    ),
]

_SUBMISSION = Record(lock_row("form_submissions", form_id="form_id", id="submission_id"))


class FormSubmissionController(Controller):
    path = "/api/v1/forms/{form_id:str}"
    tags = ["Forms"]

    @post(
        "/submit",
        summary="Submit a form",
        stores=True,
        needs="forms:submit",
        idempotent="long_running",
        errors=(400,),
        request_max_body_size=1024 * 1024,
    )
    async def submit_form(
        self,
        request: HttpRequest,
        services: Services,
        principal: Principal,
        form_id: Id,
        data: JSONBody[SubmitForm],
    ) -> AcceptedSubmissionData:
        """The form must be published: 409 `form_not_published`. Answers that are not valid: 400,
        with a message for each field in `details.errors`. A worker then saves the row, starts the
        workflow and sends the mail.
        """
        async with services.db.tx(principal.scope, autocommit=True) as tx:
            form = await live.find(tx, tenant_of(tx), form_id)
        caller = caller_of(request)
        origin = Origin(
            source="api",
            ip_address=caller.source,
            user_agent=request.headers.get("user-agent", ""),
            page_url=request.headers.get("referer", ""),
            submitted_by=principal.user_id,
        )
        sent = Answers(
            data=data.data,
            metadata=data.metadata,
            version=data.version,
            started_at=data.started_at,
        )

        async def finish(tx: Transaction, accepted: AcceptedSubmission) -> None:
            answer = AcceptedSubmissionData(accepted, form.settings.success_message)
            await idempotency.store_answer(request, tx, answer)

        accepted = await submitting.submit(services, form, sent, origin, finish)
        return AcceptedSubmissionData(accepted, form.settings.success_message)

    @get("/submissions", summary="List submissions", needs="submissions:read")
    async def list_submissions(
        self,
        tx: Tx,
        page_in: Page,
        form_id: Id,
        status: OfStatus[SubmissionStatus] = None,
        after: After = None,
        before: Before = None,
        search: Search = None,
    ) -> Paged[SubmissionSummary]:
        """The newest first. `search` looks in the answers."""
        filters = _read_filters(form_id, status, after, before, search)
        return await submissions.list_page(tx, filters, page_in)

    @get(
        "/submissions.csv",
        summary="Export submissions",
        needs="submissions:read",
        media_type="text/csv",
    )
    async def export_submissions(
        self,
        services: Services,
        principal: Principal,
        form_id: Id,
        status: OfStatus[SubmissionStatus] = None,
        after: After = None,
        before: Before = None,
        search: Search = None,
        resume_after: ResumeAfter = None,
    ) -> Stream:
        """As CSV, the oldest first, with the same filters as the list. A value that a spreadsheet
        would read as a formula starts with an apostrophe. There is a column for each field of all
        versions, those of the newest first, at most 16,384.

        An interrupted export is resumed with the `submission_id` of its last complete row as
        `resume_after`: the file has the header and the rows after that one. A tenant has at most 2
        exports at the same time: 429 `rate_limited`, with `Retry-After`.
        """
        filters = _read_filters(form_id, status, after, before, search)
        file = await export.prepare(services, principal.scope, filters, resume_after)
        headers = {"content-disposition": filenames.as_attachment(file.filename)}
        return Stream(await export.start(services, file), headers=headers)

    @get("/submissions/{submission_id:str}", summary="Get a submission", needs="submissions:read")
    async def get_submission(
        self, tx: Tx, principal: Principal, form_id: Id, submission_id: Id
    ) -> Data[SubmissionView]:
        """With its files and the state of the workflow that it started."""
        return Data(await submissions.get(tx, principal, form_id, submission_id))

    @patch(
        "/submissions/{submission_id:str}",
        summary="Archive a submission",
        needs="forms:write",
        record=_SUBMISSION,
    )
    async def update_submission(
        self,
        tx: Tx,
        principal: Principal,
        form_id: Id,
        submission_id: Id,
        data: JSONBody[UpdateSubmission],
    ) -> Data[SubmissionView]:
        """`archived`, or `processed` to restore it. 409 `invalid_state` while a worker has not
        processed it yet. The answer shows the submission, which needs submissions:read as well.
        """
        view = await submissions.set_status(tx, principal, form_id, submission_id, data.status)
        return Data(view)

    @delete("/submissions/{submission_id:str}", summary="Delete a submission", needs="forms:delete")
    async def delete_submission(self, tx: Tx, form_id: Id, submission_id: Id) -> None:
        """With its files and what it caused: events with their deliveries, notifications, and
        executions of workflows, as soon as these have ended. A row in a data table stays.
        """
        await submissions.delete(tx, form_id, submission_id)

    @get("/analytics", summary="Get a form's analytics", needs="submissions:read")
    async def get_form_analytics(
        self, services: Services, principal: Principal, form_id: Id
    ) -> Data[FormAnalytics]:
        """Views are stored every few seconds; everything else is exact."""
        return Data(await analytics.compute(services, principal.scope, form_id))

    @get(
        "/files/{file_id:str}",
        summary="Download a submitted file",
        needs="submissions:read",
        media_type="application/octet-stream",
        errors=(416,),
    )
    async def get_form_file(
        self,
        request: HttpRequest,
        services: Services,
        principal: Principal,
        form_id: Id,
        file_id: Id,
    ) -> Stream:
        """As an attachment, with `Range` and `If-None-Match`. Types that a browser might run are
        sent as application/octet-stream.
        """
        headers = request.headers
        conditions = Conditions(
            headers.get("range"), headers.get("if-range"), headers.get("if-none-match")
        )
        content = await uploads.serve(services, principal, form_id, file_id, conditions)
        return Stream(content.parts, status_code=content.status, headers=content.headers)


def _read_filters(
    form_id: str,
    status: SubmissionStatus | None,
    after: str | None,
    before: str | None,
    search: str | None,
) -> SubmissionFilter:
    since, until = parse_time("after", after), parse_time("before", before)
    return SubmissionFilter(form_id, status, since, until, search)
