"""The Prometheus metrics of a process.

All together they stay below 150 kB, whatever is requested: what grows with the routes has no
buckets, and no label has values that a client can choose.
"""

from functools import lru_cache

from prometheus_client import (
    REGISTRY,
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
)

disable_created_metrics()  # type: ignore[no-untyped-call]

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

RATE_LIMITED = Counter("parley_rate_limited", "Requests refused by the rate limit")
LIMITER_DEGRADED = Counter(
    "parley_limiter_degraded", "Requests let through unlimited because Redis was away"
)
WAITED_IN_TRANSACTION = Counter(
    "parley_waited_in_transaction",
    "Waits for something else than the database while a connection was held",
    ["what"],
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
# Caused by a step of this process, or by a machine that did not run it.
LOOP_STALLS = Counter(
    "parley_loop_stalls", "Times that the event loop was held for more than 250 ms", ["cause"]
)
LOOP_STALL_SECONDS = Counter("parley_loop_stall_seconds", "Time in which the event loop was held")


class RequestMetrics:
    _METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
    # More than there are; each has a counter for up to three outcomes.
    _MAX_ROUTES = 400

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self._seconds = Histogram(
            "parley_request_seconds",
            "Time of requests by method",
            ["method"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._requests = Counter(
            "parley_requests",
            "Requests by method, route and outcome: ok, 4xx or 5xx",
            ["method", "route", "status"],
            registry=registry,
        )
        self._route_seconds = Counter(
            "parley_route_seconds", "Time of all requests by route", ["route"], registry=registry
        )
        self._responses = Counter(
            "parley_responses", "Responses by status", ["status"], registry=registry
        )
        self._routes: set[tuple[str, str]] = set()
        self._find = lru_cache(maxsize=4096)(self._create)

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        histogram, requests, route_seconds, responses = self._find(method, route, status)
        histogram.observe(seconds)
        requests.inc()
        route_seconds.inc(seconds)
        responses.inc()

    def _create(
        self, method: str, route: str, status: int
    ) -> tuple[Histogram, Counter, Counter, Counter]:
        if method not in self._METHODS:
            method = "other"
        if method in {"OPTIONS", "other"}:
            route = "any"
        if (method, route) not in self._routes and len(self._routes) >= self._MAX_ROUTES:
            route = "other"
        self._routes.add((method, route))
        outcome = "ok" if status < 400 else f"{status // 100}xx"  # noqa: PLR2004
        return (
            self._seconds.labels(method),
            self._requests.labels(method, route, outcome),
            self._route_seconds.labels(route),
            self._responses.labels(status),
        )


REQUESTS = RequestMetrics()
