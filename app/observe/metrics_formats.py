"""The text formats of metrics, and which one a client accepts."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, Metric, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

_UNITS = ("seconds", "bytes")


class Families(Collector):
    """The families of several collectors, each with the unit that its name ends with: OpenMetrics
    shows it, and the collector of several processes does not know it.
    """

    def __init__(self, collectors: Iterable[Collector]) -> None:
        self._collectors = tuple(collectors)

    def collect(self) -> Iterator[Metric]:
        for collector in self._collectors:
            for family in collector.collect():
                family.unit = next((unit for unit in _UNITS if _has_unit(family.name, unit)), "")
                yield family


def _has_unit(name: str, unit: str) -> bool:
    return name.endswith(f"_{unit}")


class Format(NamedTuple):
    content_type: str
    render: Callable[[Collector], bytes]


PROMETHEUS: Final = Format(CONTENT_TYPE_PLAIN_0_0_4, generate_latest)
OPENMETRICS: Final = Format(openmetrics.CONTENT_TYPE_LATEST, openmetrics.generate_latest)
_OPENMETRICS_VERSIONS = {"", "1.0.0"}


def choose_format(accept: str) -> Format:
    """Returns OpenMetrics 1.0 for clients that name it and do not prefer plain text, and the
    Prometheus format for all others.
    """
    openmetrics_quality = plain_quality = 0.0
    for item in accept.lower().split(","):
        media_type, *parameters = (part.strip() for part in item.split(";"))
        values = dict(_parse_parameter(parameter) for parameter in parameters)
        quality = _parse_quality(values.get("q", "1"))
        if media_type == "text/plain":
            plain_quality = max(plain_quality, quality)
        elif (
            media_type == "application/openmetrics-text"
            and values.get("version", "") in _OPENMETRICS_VERSIONS
        ):
            openmetrics_quality = max(openmetrics_quality, quality)
    is_openmetrics = openmetrics_quality > 0 and openmetrics_quality >= plain_quality
    return OPENMETRICS if is_openmetrics else PROMETHEUS


def _parse_parameter(parameter: str) -> tuple[str, str]:
    name, _, value = parameter.partition("=")
    return name.strip(), value.strip().strip('"')


def _parse_quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
