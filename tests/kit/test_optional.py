"""Missing optional features are reported with the reason; everything else works."""

import sys
from pathlib import Path

import pytest

from app import doctor
from app.kit import optional
from app.kit.optional import Feature
from app.services import Services
from tests.stores import Stores

MISSING = Feature("planting", group="planted", module="planted_module")


def test_the_reason_is_the_one_that_setup_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    (tmp_path / ".unavailable-planted").write_text("planted-module==1 has no usable wheels\n")
    assert not optional.is_installed(MISSING)
    assert optional.read_missing_reason(MISSING) == "planted-module==1 has no usable wheels"


def test_without_a_recorded_reason_the_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert optional.read_missing_reason(MISSING) == "planted-module is not installed"


def test_every_feature_has_a_lock_file_that_setup_tries() -> None:
    root = Path(__file__).parent.parent.parent
    setup = (root / "scripts" / "setup").read_text(encoding="utf-8")
    groups = [feature.group for feature in optional.FEATURES]
    assert f'PARLEY_OPTIONAL="{" ".join(groups)}"' in setup
    for group in groups:
        assert (root / f"requirements-{group}.lock").exists()


async def test_the_doctor_reports_a_missing_feature_as_off_and_not_as_a_problem(
    services: Services, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = Feature("reading", group="present", module="msgspec")
    monkeypatch.setattr(optional, "FEATURES", (MISSING, installed))
    findings = {finding.part: finding for finding in await doctor.examine(stores.settings)}
    assert findings["planted"].state == "off"
    assert findings["planted"].text == "planting: planted-module is not installed"
    assert findings["present"].state == "ok"
    assert findings["model"].state == "off"


def test_redis_and_valkey_are_distinguished(subtests: pytest.Subtests) -> None:
    for info, name, is_old in [
        ({"redis_version": "6.2.14"}, "Redis 6.2.14", False),
        ({"redis_version": "6.0.16"}, "Redis 6.0.16", True),
        ({"redis_version": "7.2.4", "valkey_version": "9.1.2"}, "Valkey 9.1.2", False),
    ]:
        with subtests.test(info=info, name=name, is_old=is_old):
            assert doctor.server_name(info) == name
            assert doctor.is_too_old(info) == is_old
