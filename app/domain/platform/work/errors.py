from app.kit.errors import Conflict, NotFound


class WorkNotFound(NotFound, code="work_not_found"): ...


class WorkNotDead(Conflict, code="work_not_dead"): ...


class WorkNotRetryable(Conflict, code="work_not_retryable"): ...
