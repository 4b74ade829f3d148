from typing import Any, Literal

from app.kit.errors import Conflict, NotFound, ProviderError, Unavailable

Reason = Literal["timeout", "rate_limited", "unreachable", "unavailable", "refused", "broken"]
# Failures that a retry may resolve. A timeout is not one of them, because the provider charges for
# an answer that arrives too late.
TRANSIENT: frozenset[Reason] = frozenset({"rate_limited", "unreachable", "unavailable", "broken"})


class ProviderKeyNotFound(NotFound, code="provider_key_not_found"): ...


class ModelNotConfigured(Conflict, code="model_not_configured"): ...


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
        super().__init__(message, details=details)
        self.reason = reason
        self.retry_after = retry_after
