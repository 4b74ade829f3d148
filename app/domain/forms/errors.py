from collections.abc import Iterable

from app.kit.errors import ApiError, Conflict, NotFound, Problem, RateLimited

_MAX_PROBLEMS = 100
_MAX_MESSAGE_CHARS = 300


class FormNotFound(NotFound):
    """The form does not exist, or is not published."""

    code = "form_not_found"


class FormVersionNotFound(NotFound):
    code = "form_version_not_found"


class FormFieldNotFound(NotFound):
    code = "form_field_not_found"


class SubmissionNotFound(NotFound):
    code = "submission_not_found"


class FormConversationNotFound(NotFound):
    code = "form_conversation_not_found"


class DraftNotFound(NotFound):
    code = "draft_not_found"


class InvalidFormState(Conflict):
    """The form is in a state that does not allow this."""

    code = "invalid_state"


class TooManyVersions(Conflict):
    code = "too_many_versions"


class MessageConflict(Conflict):
    """Two messages of one conversation at the same time."""

    code = "message_conflict"


class FormNotPublished(Conflict):
    code = "form_not_published"


class FormClosed(Conflict):
    code = "form_closed"


class InvalidAnswers(ApiError):
    """`details.errors` has a field and a message for each problem."""

    status, code = 400, "validation_error"

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> "InvalidAnswers":
        errors = [
            {"field": field, "message": message[:_MAX_MESSAGE_CHARS]}
            for field, message in list(problems)[:_MAX_PROBLEMS]
        ]
        first = f"{errors[0]['field']}: {errors[0]['message']}" if errors else "not valid"
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        return cls(f"{first}{more}", details={"errors": errors})


class TooManyUploads(RateLimited):
    status, code = 429, "too_many_uploads"


class TooManySubmissions(RateLimited):
    status, code = 429, "rate_limit_exceeded"
