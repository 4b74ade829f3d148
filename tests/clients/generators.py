"""Validates the API document and generates clients from it, with the tools that others use.

`python -m tests.clients.generators TOOL DOCUMENT FOLDER` prints a line about the result, or what
the tool complains about. A warning is a failure.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from app.kit import node

_BIN: Final = Path(sys.executable).parent
_ROOT: Final = Path(__file__).parent.parent.parent
TOOLS: Final = Path(__file__).parent / "tools"
# The package of `generate_python_client`, within its folder.
PACKAGE: Final = "parley_client"
_IMPORT_ALL: Final = f"""
import importlib, pkgutil, {PACKAGE} as package
modules = [module.name for module in pkgutil.walk_packages(package.__path__, "{PACKAGE}.")]
print(len([*map(importlib.import_module, modules)]))
"""
_REDOCLY: Final = Path("@redocly/cli/bin/cli.js")
_REDOCLY_ENV: Final = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}
_TYPESCRIPT: Final = (
    *("--noEmit", "--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess"),
    *("--target", "es2022", "--lib", "es2022,dom", "--moduleResolution", "bundler"),
    *("--module", "esnext"),
)


class ToolError(Exception):
    """The message is what the tool complains about."""


def validate(document: Path, _folder: Path) -> str:
    _run(_BIN / "openapi-spec-validator", document)
    return "valid"


def lint(document: Path, _folder: Path) -> str:
    packages = node.install(TOOLS)
    config = ("--config", TOOLS / "redocly.yaml")
    node.run(packages / _REDOCLY, "lint", *config, document, env=_REDOCLY_ENV)
    return "no errors, no warnings"


def generate_python_client(document: Path, folder: Path) -> str:
    options = ("--meta", "none", "--fail-on-warning", "--config", TOOLS / "python-client.yaml")
    command = ("generate", "--path", document, "--output-path", folder / PACKAGE, "--overwrite")
    _run(_BIN / "openapi-python-client", *command, *options)
    return f"{_run(_BIN / 'python', '-W', 'error', '-c', _IMPORT_ALL, cwd=folder).strip()} modules"


def generate_models(document: Path, folder: Path) -> str:
    """With a single file, which names with dots would make impossible."""
    models = folder / "models.py"
    files = ("--input", document, "--output", models, "--input-file-type", "openapi")
    options = ("--formatters", "builtin", "--enum-field-as-literal", "all")
    kind = ("--output-model-type", "pydantic_v2.BaseModel", "--target-python-version", "3.11")
    _run(_BIN / "datamodel-codegen", *files, *options, *kind)
    count = "import models; print(sum(isinstance(kind, type) for kind in vars(models).values()))"
    return f"{_run(_BIN / 'python', '-W', 'error', '-c', count, cwd=folder).strip()} models"


def generate_types(document: Path, folder: Path) -> str:
    """Fields with a default may be left out of a body."""
    packages = node.install(TOOLS)
    types, usage = folder / "api.ts", folder / "usage.ts"
    options = ("--default-non-nullable", "false")
    generator = packages / "openapi-typescript" / "bin" / "cli.js"
    node.run(generator, document, "--output", types, *options)
    usage.write_bytes((TOOLS / "usage.ts").read_bytes())
    node.run(packages / "typescript" / "bin" / "tsc", *_TYPESCRIPT, usage)
    return f"{len(types.read_text().splitlines())} lines of types"


CHECKS: Final[dict[str, Callable[[Path, Path], str]]] = {
    "validator": validate,
    "redocly": lint,
    "python": generate_python_client,
    "pydantic": generate_models,
    "typescript": generate_types,
}


def _run(*command: object, cwd: Path = _ROOT) -> str:
    """Raises ToolError, also for a tool that warns."""
    path = f"{_BIN}{os.pathsep}{os.environ.get('PATH', '')}"
    result = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, "PATH": path, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0 or result.stderr:
        raise ToolError(f"status {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def main(tool: str, document: str, folder: str) -> int:
    Path(folder).mkdir(parents=True)
    try:
        print(CHECKS[tool](Path(document), Path(folder)))  # noqa: T201  # a command
    except (ToolError, node.NodeError) as error:
        print(error)  # noqa: T201  # a command
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
