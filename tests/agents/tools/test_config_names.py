"""Names of files and packages in the configs of functions, scripts and databases."""

import pytest

from tests.agents.tools.tool_configs import (
    PATH,
    VALID_CONFIGS,
    find_invalid_keys,
    tool_body,
    validate_config,
)
from tests.assertions import refused
from tests.world import Client

INVALID_FILE_NAMES = [
    "",
    ".",
    "..",
    "/etc/passwd",
    "a/b.py",
    "../a.py",
    "a..py",
    "..\\a.py",
    "a\\b.py",
    "-c",
    "--version",
    ".hidden",
    "a b.py",
    " a.py",
    "a.py ",
    "a.py\n",
    "a\nb.py",
    "a\tb.py",
    "\u00e4.py",
    "\uff0e\uff0e/a",
    "a\u202egpj.py",
    "a;b",
    "$(id)",
    "a*",
    "x" * 101,
]


# File names


def test_an_entrypoint_is_a_plain_file_name(subtests: pytest.Subtests) -> None:
    for name in INVALID_FILE_NAMES:
        with subtests.test(name=name):
            config = {**VALID_CONFIGS["script"], "entrypoint": name}
            assert find_invalid_keys("script", config) == {"config.entrypoint"}


def test_a_file_has_a_plain_file_name(subtests: pytest.Subtests) -> None:
    for name in INVALID_FILE_NAMES:
        with subtests.test(name=name):
            config = {**VALID_CONFIGS["script"], "files": {"main.sh": "true", name: "x"}}
            (key,) = find_invalid_keys("script", config)
            assert key.startswith("config.files")


def test_an_embedded_database_is_a_plain_file_name(subtests: pytest.Subtests) -> None:
    for name in INVALID_FILE_NAMES:
        with subtests.test(name=name):
            config = {"db_type": "sqlite", "database": name}
            assert find_invalid_keys("database", config) == {"config.database"}


async def test_a_nul_in_a_config_is_refused(developer: Client, subtests: pytest.Subtests) -> None:
    for field in ("entrypoint", "files", "code"):
        with subtests.test(field=field):
            config = dict(VALID_CONFIGS["script"])
            config[field] = {"a\0.sh": "true"} if field == "files" else "main.sh\0"
            answer = await developer.post(PATH, tool_body("script", config))
            refused(answer, 422, "validation_error")


def test_plain_file_names_are_accepted(subtests: pytest.Subtests) -> None:
    for name in ("a", "a.py", "A-1_b.tar.gz", "_x", "0", "x" * 100):
        with subtests.test(name=name):
            validate_config(
                "script", {**VALID_CONFIGS["script"], "entrypoint": name, "files": {name: "true"}}
            )


async def test_the_error_explains_which_file_names_are_accepted(developer: Client) -> None:
    config = {**VALID_CONFIGS["script"], "entrypoint": "-c"}
    answer = await developer.post(PATH, tool_body("script", config))
    details = refused(answer, 422, "validation_error")["details"]
    assert details == {
        "config.entrypoint": "must be a plain file name: letters, digits, dots, dashes, underscores"
    }


# Packages


async def test_a_package_that_is_not_installed_is_named(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for tool_type in ("function", "script"):
        with subtests.test(tool_type=tool_type):
            config = {
                **VALID_CONFIGS[tool_type],
                "runtime": "python",
                "packages": ["no-such-package"],
            }
            answer = await developer.post(PATH, tool_body(tool_type, config))
            details = refused(answer, 422, "validation_error")["details"]
            assert set(details) == {"config.packages"}
            assert "no-such-package" in details["config.packages"]


async def test_there_are_packages_for_python_only(developer: Client) -> None:
    config = {**VALID_CONFIGS["function"], "packages": ["left-pad"]}
    answer = await developer.post(PATH, tool_body("function", config))
    assert set(refused(answer, 422, "validation_error")["details"]) == {"config.packages"}


INVALID_PACKAGE_NAMES: list[str] = [
    "",
    "-r",
    "--index-url=https://evil.example",
    "requests==2.0",
    "requests[security]",
    "../wheel.whl",
    "https://evil.example/x.whl",
    "a b",
    "a\n",
    "x" * 101,
]


def test_a_package_is_a_plain_name(subtests: pytest.Subtests) -> None:
    for name in INVALID_PACKAGE_NAMES:
        with subtests.test(name=name):
            (key,) = find_invalid_keys(
                "function", {**VALID_CONFIGS["function"], "packages": [name]}
            )
            assert key.startswith("config.packages")
