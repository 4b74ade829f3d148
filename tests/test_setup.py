"""`scripts/setup` creates a `.venv` from a lock file, from wheels only.

Each test has a small checkout, whose packages come from a folder instead of a registry.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packages import locked, source, wheel
from tests.processes import ROOT

_PROJECT = """
[build-system]
requires = ["uv_build>=0.9,<0.14"]
build-backend = "uv_build"
[project]
name = "parley"
version = "0"
[project.scripts]
parley = "app:main"
[tool.uv.build-backend]
module-name = "app"
module-root = ""
"""


class Checkout:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.packages = folder / "packages"
        self.witness = folder / "something-was-built"
        for path in (folder / "scripts", folder / "app", self.packages, folder / "home"):
            path.mkdir(parents=True)
        shutil.copy(ROOT / "scripts" / "setup", folder / "scripts")
        (folder / "scripts" / "uv.lock").touch()
        (folder / "pyproject.toml").write_text(_PROJECT, encoding="utf-8")
        (folder / "app" / "__init__.py").write_text("def main(): print('runs')\n", encoding="utf-8")
        venv = [sys.executable, "-m", "venv", "--without-pip", str(folder / ".venv")]
        subprocess.run(venv, check=True)
        (folder / ".venv" / "bin" / "uv").symlink_to(Path(sys.executable).with_name("uv"))
        self.lock("requirements.lock", self.wheel("planted-main"))
        self.lock("requirements-speech.lock", self.wheel("planted-speech"))
        self.lock("requirements-encoder.lock", self.wheel("planted-encoder"))

    def wheel(self, name: str, tag: str = "py3-none-any") -> Path:
        return wheel(self.packages, name, "1.0", tag)

    def source(self, name: str) -> Path:
        return source(self.packages, name, "1.0", self.witness)

    def lock(self, name: str, *packages: Path) -> None:
        (self.folder / name).write_text("".join(map(locked, packages)), encoding="utf-8")

    def setup(self, **more: str) -> subprocess.CompletedProcess[str]:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "home"),
            "UV_OFFLINE": "1",
            "UV_FIND_LINKS": str(self.packages),
            **more,
        }
        return subprocess.run(
            ["bash", "-c", ". scripts/setup requirements.lock; echo ready"],
            cwd=self.folder, env=env, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    def python(self, code: str) -> str:
        command = [str(self.folder / ".venv" / "bin" / "python"), "-c", code]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def note(self) -> str:
        return (self.folder / ".venv" / ".unavailable-speech").read_text(encoding="utf-8")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "checkout")


def test_packages_with_a_wheel_and_the_command_are_installed(checkout: Checkout) -> None:
    result = checkout.setup()
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith("ready\n")
    checkout.python("import planted_main, planted_speech")
    command = subprocess.run(
        [checkout.folder / ".venv/bin/parley"], capture_output=True, check=True
    )
    assert command.stdout == b"runs\n"


def test_a_second_run_installs_nothing(checkout: Checkout) -> None:
    checkout.setup()
    shutil.rmtree(checkout.packages)
    result = checkout.setup()
    assert (result.returncode, result.stdout) == (0, "ready\n")


def test_a_too_old_python_is_one_clear_line(checkout: Checkout) -> None:
    shutil.rmtree(checkout.folder / ".venv")
    programs = checkout.folder / "programs"
    programs.mkdir()
    for name in ("bash", "cat", "cksum", "dirname", "mkdir"):
        (programs / name).symlink_to(shutil.which(name) or name)
    old = programs / "python3"
    old.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    old.chmod(0o755)
    result = checkout.setup(PATH=str(programs))
    assert result.returncode == 1
    assert (result.stdout, result.stderr.count("\n")) == ("", 1)
    assert "Python 3.11 or newer" in result.stderr


def test_a_package_without_a_wheel_is_one_clear_line_and_nothing_is_built(
    checkout: Checkout,
) -> None:
    checkout.lock("requirements.lock", checkout.source("planted-source"))
    result = checkout.setup()
    assert result.returncode == 1
    assert "ready" not in result.stdout
    assert result.stderr.count("\n") == 1
    for word in ("requirements.lock", os.uname().machine, "planted-source==1.0", "README"):
        assert word in result.stderr
    assert not checkout.witness.exists()


def test_a_wheel_for_another_platform_is_not_used(checkout: Checkout) -> None:
    checkout.lock("requirements.lock", checkout.wheel("planted-other", "py3-none-win_amd64"))
    result = checkout.setup()
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert "planted-other" in result.stderr


def test_a_package_that_was_tampered_with_is_not_installed(checkout: Checkout) -> None:
    package = checkout.wheel("planted-main")
    checkout.lock("requirements.lock", package)
    package.write_bytes(package.read_bytes() + b"\0")
    assert checkout.setup().returncode != 0
    assert not (checkout.folder / ".venv" / "bin" / "parley").exists()


def test_an_optional_feature_without_a_wheel_is_noted_and_the_rest_works(
    checkout: Checkout, subtests: pytest.Subtests
) -> None:
    for kind in ["source", "other platform"]:
        with subtests.test(kind=kind):
            name = "planted-optional"
            other = (
                checkout.source(name)
                if kind == "source"
                else checkout.wheel(name, "py3-none-win32")
            )
            checkout.lock("requirements-speech.lock", other)
            result = checkout.setup()
            assert (result.returncode, result.stderr.count("error")) == (0, 0)
            checkout.python("import planted_main")
            assert "planted-optional==1.0 has no" in checkout.note()
            assert checkout.note().count("\n") == 1
            assert not checkout.witness.exists()


def test_an_optional_feature_is_installed_once_its_lock_has_a_wheel(
    checkout: Checkout,
) -> None:
    checkout.lock("requirements-speech.lock", checkout.source("planted-optional"))
    checkout.setup()
    checkout.lock("requirements-speech.lock", checkout.wheel("planted-optional"))
    assert checkout.setup().returncode == 0
    checkout.python("import planted_optional")
    assert not (checkout.folder / ".venv" / ".unavailable-speech").exists()


def test_an_optional_feature_is_retried_after_the_registry_was_unreachable(
    checkout: Checkout,
) -> None:
    checkout.setup()
    checkout.lock("requirements-speech.lock", checkout.wheel("planted-later"))
    unreachable = {
        "UV_OFFLINE": "0",
        "UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple",
        "UV_HTTP_RETRIES": "0",
        "UV_FIND_LINKS": "",
    }
    assert checkout.setup(**unreachable).returncode == 0
    assert "Failed to fetch" in checkout.note()
    assert checkout.setup().returncode == 0
    checkout.python("import planted_main, planted_later")


def test_setup_works_without_a_writable_home(checkout: Checkout, subtests: pytest.Subtests) -> None:
    for home in ["", "/proc/nowhere"]:
        with subtests.test(home=home):
            result = checkout.setup(HOME=home)
            assert result.returncode == 0, result.stderr
            checkout.python("import planted_main, planted_speech")
