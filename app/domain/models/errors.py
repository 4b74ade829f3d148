from typing import Any, Literal

from app.kit.errors import Conflict, NotFound, ProviderError

Reason = Literal["timeout", "rate_limited", "unreachable", "unavailable", "refused", "broken"]
# What may pass when the model is asked again a little later. A time-out is not among them: an
# answer that came too late is paid for all the same.
TRANSIENT: frozenset[Reason] = frozenset({"rate_limited", "unreachable", "unavailable", "broken"})


class ProviderKeyNotFound(NotFound):
    code = "provider_key_not_found"


class ModelNotConfigured(Conflict):
    code = "model_not_configured"


class ModelFailed(ProviderError):
    """The provider did not give a whole answer; `reason` says in which way."""

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
