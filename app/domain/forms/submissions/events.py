from typing import Annotated, Any

from app.domain.area import Event, example


class _SubmissionEvent(Event):
    submission_id: Annotated[str, example("sbm_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    form_id: Annotated[str, example("frm_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    form_name: Annotated[str, example("Contact")]
    status: Annotated[str, example("received")]


class SubmissionCreated(_SubmissionEvent):
    """A form was submitted.

    `data` is null for answers of more than 32 KiB, which the API returns. `owner_id` is the user
    who created the form.
    """

    type = "form.submission.created"

    version: Annotated[int, example(1)]
    data: Annotated[dict[str, Any] | None, example({"email": "ada@example.com"})]
    source: Annotated[str, example("public")]
    flags: Annotated[list[str], example([])]
    owner_id: Annotated[str | None, example("usr_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    submitted_by: Annotated[str | None, example(None)]


class SubmissionUpdated(_SubmissionEvent):
    """A submission was processed or archived."""

    type = "form.submission.updated"

    status: Annotated[str, example("processed")]
    errors: Annotated[list[dict[str, str]], example([])]
