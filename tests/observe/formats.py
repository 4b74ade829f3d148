"""Parses metrics with the parsers of Prometheus, and checks what the parsers let through."""

import math
import re

import httpx
from prometheus_client import Metric
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families

OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_TYPE_LINE = re.compile(r"^# TYPE (\S+) (\S+)$", re.MULTILINE)
_UNIT = re.compile(r"_(seconds|bytes)\Z")


def check_openmetrics(answer: httpx.Response) -> dict[str, Metric]:
    """Returns the families by name."""
    assert answer.status_code == 200
    assert answer.headers["content-type"] == OPENMETRICS_TYPE
    assert answer.headers["vary"] == "Accept"
    families = parse_openmetrics(answer.text)
    assert "parley_loop_stall_seconds" in families
    return families


def check_prometheus(answer: httpx.Response) -> None:
    assert answer.status_code == 200
    assert answer.headers["content-type"] == PROMETHEUS_TYPE
    assert answer.headers["vary"] == "Accept"
    parse_prometheus(answer.text)


def parse_openmetrics(text: str) -> dict[str, Metric]:
    assert text.endswith("\n# EOF\n")
    families = list(openmetrics_parser.text_string_to_metric_families(text))  # type: ignore[no-untyped-call]
    by_name = {family.name: family for family in families}
    assert len(by_name) == len(families)
    for family in families:
        unit = _UNIT.search(family.name)
        assert family.unit == (unit[1] if unit else ""), family.name
        assert family.documentation, family.name
        _check_samples(family)
    return by_name


def parse_prometheus(text: str) -> dict[str, Metric]:
    assert "# EOF" not in text
    types = _TYPE_LINE.findall(text)
    assert len(dict(types)) == len(types)
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert len(families) == len(types)
    for family in families.values():
        _check_samples(family)
    return families


def _check_samples(family: Metric) -> None:
    assert family.type in {"counter", "gauge", "histogram"}, family.name
    samples = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in family.samples]
    assert len(set(samples)) == len(samples), family.name
    if family.type == "counter":
        assert {name for name, _ in samples} <= {f"{family.name}_total"}
    if family.type == "histogram":
        _check_buckets(family)


def _check_buckets(family: Metric) -> None:
    """Every series ends with the bucket of all observations."""
    highest: dict[tuple[tuple[str, str], ...], float] = {}
    counts: dict[tuple[tuple[str, str], ...], float] = {}
    for sample in family.samples:
        labels = tuple(sorted(item for item in sample.labels.items() if item[0] != "le"))
        if sample.name == f"{family.name}_bucket" and math.isinf(float(sample.labels["le"])):
            highest[labels] = sample.value
        elif sample.name == f"{family.name}_count":
            counts[labels] = sample.value
    assert highest == counts, family.name
