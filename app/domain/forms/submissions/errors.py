from collections.abc import Iterable

from app.kit.errors import ApiError, NotFound, Problem, RateLimited

_MAX_PROBLEMS = 100
_MAX_MESSAGE_CHARS = 300


class SubmissionNotFound(NotFound, code="submission_not_found"): ...


class DraftNotFound(NotFound, code="draft_not_found"): ...


class InvalidAnswers(ApiError, status=400, code="validation_error"):
    """`details.errors` has a field and a message for each problem."""

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> "InvalidAnswers":
        errors = [
            {"field": field, "message": message[:_MAX_MESSAGE_CHARS]}
            for field, message in list(problems)[:_MAX_PROBLEMS]
        ]
        first = f"{errors[0]['field']}: {errors[0]['message']}" if errors else "not valid"
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        return cls(f"{first}{more}", details={"errors": errors})


class TooManyUploads(RateLimited, code="too_many_uploads"): ...


class TooManySubmissions(RateLimited, code="rate_limit_exceeded"): ...
