"""What the log says of a machine that cannot isolate the processes."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from app.templating.expressions import Expressions, process

# Answers each template with 1, and says that two limits are missing.
_CHILD = """
import os

def write(content):
    os.write(1, (1 + len(content)).to_bytes(4, "big") + b"\\0" + content)

write(b'["landlock: none", "seccomp: none"]')
while header := os.read(0, 4):
    os.read(0, int.from_bytes(header, "big"))
    write(b'{"value": [[1], 9]}')
"""


async def test_missing_limits_are_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "child.py"
    script.write_text(_CHILD)
    monkeypatch.setattr(process, "_SCRIPT", script)
    expressions = Expressions(processes=2)
    with capture_logs() as lines:
        for group in ("a", "b", "c"):
            assert await expressions.render("{{ 1 }}", {}, group=group) == 1
        await expressions.close()
    (line,) = [line for line in lines if "missing" in line]
    assert line["log_level"] == "warning"
    assert line["missing"] == ["landlock: none", "seccomp: none"]


async def test_a_machine_with_all_limits_logs_nothing() -> None:
    expressions = Expressions(processes=1)
    with capture_logs() as lines:
        assert await expressions.render("{{ 1 }}", {}, group="a") == 1
        await expressions.close()
    assert [line for line in lines if "missing" in line] == []
