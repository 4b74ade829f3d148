"""A pytest plugin that sums the time of each test file, for the end of the run."""

from collections import defaultdict
from pathlib import Path

import pytest

_SHOWN = 10
_seconds: dict[str, float] = defaultdict(float)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    # A subtest is part of its test, whose time includes it.
    if not isinstance(report, pytest.SubtestReport):
        _seconds[report.location[0]] += report.duration


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    slowest = sorted(_seconds.items(), key=lambda item: item[1], reverse=True)[:_SHOWN]
    terminalreporter.section("slowest files")
    for path, seconds in slowest:
        share = seconds / sum(_seconds.values())
        terminalreporter.write_line(f"{seconds:6.1f} s  {share:5.1%}  {Path(path).as_posix()}")
