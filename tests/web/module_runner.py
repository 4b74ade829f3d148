"""Runs modules for browsers that need no page, in Node."""

import json
import subprocess
from pathlib import Path
from typing import Any

from app.kit.node import NODE
from app.web import assets

_SCRIPT = Path(__file__).with_suffix(".mjs")


class ModuleRunner:
    def __init__(self) -> None:
        # Node finds out by itself that the files are modules, and would warn about it.
        command = [str(NODE), "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", str(_SCRIPT)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )

    def evaluate(self, path: str, function: str, argument: Any = None) -> Any:
        """Calls `function`, in JavaScript, with a module of `static` and an argument."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        url = (assets._STATIC / path).as_uri()
        request = {"path": url, "source": function, "argument": argument}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def close(self) -> None:
        self._process.communicate()
