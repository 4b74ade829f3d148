"""Formats of metrics: which one a client receives, and that the parsers of Prometheus read it."""

import pytest
from prometheus_client.registry import Collector

from app.http.health import BacklogCollector
from app.observe import metrics
from app.observe.metrics_formats import OPENMETRICS, PROMETHEUS, choose_format
from app.observe.metrics_page import MetricsPage
from tests.observe.formats import parse_openmetrics, parse_prometheus

_OPENMETRICS = "application/openmetrics-text"
# What Prometheus 3.5, Prometheus 2.20 and VictoriaMetrics send.
_PROMETHEUS_3 = (
    f"{_OPENMETRICS};version=1.0.0;escaping=allow-utf-8;q=0.6,{_OPENMETRICS};version=0.0.1;q=0.5,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
_PROMETHEUS_2 = f"{_OPENMETRICS}; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
_VICTORIA_METRICS = "text/plain;version=0.0.4;q=1,*/*;q=0.1"


def test_the_format_is_the_one_that_the_client_prefers(subtests: pytest.Subtests) -> None:
    cases = [
        ("", PROMETHEUS),
        ("*/*", PROMETHEUS),
        ("text/html,application/xhtml+xml,*/*;q=0.8", PROMETHEUS),
        (_OPENMETRICS, OPENMETRICS),
        ("Application/OpenMetrics-Text; Version=1.0.0; charset=utf-8", OPENMETRICS),
        (f'{_OPENMETRICS};version="1.0.0"', OPENMETRICS),
        (_PROMETHEUS_3, OPENMETRICS),
        (_PROMETHEUS_2, PROMETHEUS),
        (_VICTORIA_METRICS, PROMETHEUS),
        (f"{_OPENMETRICS},text/plain", OPENMETRICS),
        (f"text/plain;q=0.9,{_OPENMETRICS};q=0.2", PROMETHEUS),
        (f"{_OPENMETRICS};version=2.0.0,text/plain;q=0.1", PROMETHEUS),
        (f"{_OPENMETRICS};q=0", PROMETHEUS),
        (f"{_OPENMETRICS};q=high", PROMETHEUS),
        (f"{_OPENMETRICS};q=nan", PROMETHEUS),
        (";;,=,;q", PROMETHEUS),
    ]
    for accept, expected in cases:
        with subtests.test(accept):
            assert choose_format(accept) is expected


_ODD_LABEL = 'say "hi"\\now\nand # then } ok, é'


async def _collect() -> Collector:
    return BacklogCollector([(_ODD_LABEL, "pending", 3, 1.5), ("b", "leased", 10**9, -0.1)])


async def test_both_formats_are_parsed_with_the_same_values() -> None:
    metrics.WORK.labels(_ODD_LABEL, "done").inc()
    metrics.WORK_SECONDS.labels(_ODD_LABEL).observe(45)
    metrics.MODEL_SECONDS.labels("openai", "ok").observe(1e-9)
    metrics.REQUESTS.observe("GET", "/a/{b}", 200, 0.1)
    page = MetricsPage(collect=_collect)
    text, _ = await page.read(_OPENMETRICS)
    open_families = parse_openmetrics(text.decode())
    text, _ = await page.read()
    plain_families = parse_prometheus(text.decode())
    assert open_families.keys() == plain_families.keys()
    for name in ("parley_work", "parley_work_seconds", "parley_work_open"):
        assert open_families[name].samples == plain_families[name].samples
        labels = [sample.labels["kind"] for sample in open_families[name].samples]
        assert _ODD_LABEL in labels
    assert open_families["parley_work_oldest_seconds"].unit == "seconds"
    assert open_families["process_resident_memory_bytes"].unit == "bytes"
