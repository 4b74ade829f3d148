"""The Prometheus metrics that `/metrics` shows."""

from functools import lru_cache

from prometheus_client import Counter, Histogram

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

REQUESTS = Histogram(
    "parley_request_seconds",
    "Requests by route and status",
    ["method", "route", "status"],
    buckets=_BUCKETS,
)
RATE_LIMITED = Counter("parley_rate_limited", "Requests refused by the rate limit")
LIMITER_DEGRADED = Counter(
    "parley_limiter_degraded", "Requests let through unlimited because Redis was away"
)
WORK = Counter("parley_work", "Work by kind and outcome", ["kind", "outcome"])
WORK_SECONDS = Histogram("parley_work_seconds", "Time to run work", ["kind"], buckets=_BUCKETS)

TURNS = Counter(
    "parley_turns", "Turns of conversations by source and outcome", ["source", "outcome"]
)
MODEL_SECONDS = Histogram(
    "parley_model_seconds",
    "Time of one model call by provider and outcome",
    ["provider", "outcome"],
    buckets=(*_BUCKETS, 60, 120, 300, 600),
)


@lru_cache(maxsize=4096)
def _series(method: str, route: str, status: int) -> Histogram:
    return REQUESTS.labels(method, route, status)


def observe_request(method: str, route: str, status: int, seconds: float) -> None:
    _series(method, route, status).observe(seconds)
