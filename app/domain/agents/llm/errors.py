import math
from typing import Any, Literal

from app.kit.errors import NO_RETRY, Conflict, NotFound, ProviderError, Unavailable

Reason = Literal["timeout", "rate_limited", "unreachable", "unavailable", "refused", "broken"]
# Failures that a retry may resolve. A timeout is not one of them, because the provider charges for
# an answer that arrives too late.
TRANSIENT: frozenset[Reason] = frozenset({"rate_limited", "unreachable", "unavailable", "broken"})
# When a caller should try again, where the provider does not say it.
_RETRY_SECONDS = 5
_MAX_RETRY_SECONDS = 86_400

_RATE_LIMITED = 429
_UNPROCESSABLE = 422
_CLIENT_ERROR, _SERVER_ERROR = 400, 500
_TIMEOUTS = frozenset({408, 504})
_KEY_REFUSED = frozenset({401, 403})


class ProviderKeyNotFound(NotFound, code="provider_key_not_found"): ...


class ModelNotConfigured(Conflict, code="model_not_configured"):
    def __init__(self, message: str, *, details: dict[str, Any] | None = None) -> None:
        super().__init__(message, details=details, headers=NO_RETRY)


class ModelBusy(Unavailable):
    """No slot of the local model was free in time, or too many requests wait for one."""

    _RETRY_SECONDS = 10

    def __init__(self) -> None:
        seconds = self._RETRY_SECONDS
        super().__init__(f"The local model is busy; try again in {seconds} seconds", seconds)
        # The last event of a stream has no headers.
        self.details = {"retry_after": seconds}


class ModelFailed(ProviderError):
    """The provider did not return a complete answer; `reason` is the kind of failure."""

    def __init__(
        self,
        model: str,
        reason: Reason,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        details: dict[str, Any] = {"model": model, "reason": reason}
        if status is not None:
            details["provider_status"] = status
        headers = NO_RETRY
        if reason in TRANSIENT:
            seconds = _RETRY_SECONDS if retry_after is None else math.ceil(retry_after)
            seconds = min(max(1, seconds), _MAX_RETRY_SECONDS)
            headers = {"Retry-After": str(seconds)}
            # The last event of a stream has no headers.
            details["retry_after"] = seconds
        super().__init__(message, details=details, headers=headers)
        self.reason = reason
        self.provider_status = status
        self.retry_after = retry_after


class ModelRateLimited(ModelFailed, status=429, code="rate_limited"):
    """The provider limits the tenant's requests."""


class ModelRejected(ModelFailed, status=400, code="provider_rejected"):
    """The provider found something wrong with the request."""


class ModelRejectedContent(ModelFailed, status=422, code="provider_rejected"):
    """The provider understood the request, but found its content wrong."""


class ModelKeyRefused(ModelFailed, status=409, code="model_not_configured"):
    """The provider does not accept the tenant's key."""


def reason_of(status: int) -> Reason:
    if status == _RATE_LIMITED:
        return "rate_limited"
    if status in _TIMEOUTS:
        return "timeout"
    return "unavailable" if status >= _SERVER_ERROR else "refused"


def refused_by_provider(
    model: str, status: int, message: str, retry_after: float | None = None
) -> ModelFailed:
    """Returns the error for a provider's answer with this status."""
    error_class = ModelFailed
    if status == _RATE_LIMITED:
        error_class = ModelRateLimited
    elif status in _KEY_REFUSED:
        error_class = ModelKeyRefused
    elif status == _UNPROCESSABLE:
        error_class = ModelRejectedContent
    elif _CLIENT_ERROR <= status < _SERVER_ERROR and status not in _TIMEOUTS:
        error_class = ModelRejected
    reason = reason_of(status)
    return error_class(model, reason, message, status=status, retry_after=retry_after)
