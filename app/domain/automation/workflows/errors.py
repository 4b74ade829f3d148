from typing import Final

from app.kit.errors import ApiError, NotFound, RateLimited


class WorkflowNotFound(NotFound):
    status, code = 404, "workflow_not_found"


class WorkflowVersionNotFound(NotFound):
    status, code = 404, "workflow_version_not_found"


class WorkflowExecutionNotFound(NotFound):
    status, code = 404, "workflow_execution_not_found"


class InvalidState(ApiError):
    """The workflow or the execution is in a state that does not allow this."""

    status, code = 409, "invalid_state"


class WorkflowNotPublished(ApiError):
    status, code = 409, "workflow_not_published"


class TooManyPendingExecutions(RateLimited):
    """So many executions of the tenant wait to be started that no more are accepted."""

    status, code = 429, "too_many_pending_executions"


class WorkflowDepthExceeded(ApiError):
    """Workflows call each other in a chain that is too long, or in a loop."""

    status, code = 409, "workflow_depth_exceeded"


# No retry helps, and each level that tried again would multiply the executions: a workflow that
# calls the one that failed fails with the same code.
PERMANENT: Final = frozenset({WorkflowDepthExceeded.code})
