from typing import Final

from app.kit.errors import Conflict, NotFound, RateLimited


class WorkflowNotFound(NotFound, code="workflow_not_found"): ...


class WorkflowVersionNotFound(NotFound, code="workflow_version_not_found"): ...


class WorkflowExecutionNotFound(NotFound, code="workflow_execution_not_found"): ...


class InvalidState(Conflict, code="invalid_state"):
    """The workflow or the execution is in a state that does not allow this."""


class WorkflowNotPublished(Conflict, code="workflow_not_published"): ...


class TooManyPendingExecutions(RateLimited, code="too_many_pending_executions"):
    """So many executions of the tenant wait to be started that no more are accepted."""


class WorkflowDepthExceeded(Conflict, code="workflow_depth_exceeded"):
    """Workflows call each other in a chain that is too long, or in a loop."""


# No retry helps, and each level that tried again would multiply the executions: a workflow that
# calls the one that failed fails with the same code.
PERMANENT: Final = frozenset({WorkflowDepthExceeded.code})
