"""`parley doctor`: the models of the three settings, and SearXNG."""

import asyncio
import importlib.util
from pathlib import Path

import msgspec
import pytest

from app import doctor
from app.crypto.keyring import Keyring
from app.doctor import Finding
from app.kit import optional
from app.sandbox import machine_memory
from app.services import Services
from app.settings import Settings
from tests.agents.search.engine_server import EngineServer
from tests.platform.mail.inbox import run_smtp_server
from tests.ports import free_port
from tests.server import Server
from tests.stores import Stores

_SETTINGS = {
    "embeddings": "embedding_model",
    "transcription": "transcription_model",
    "voice": "speech_model",
}


async def _check_models(settings: Settings, **fields: str) -> dict[str, Finding]:
    changed = msgspec.structs.replace(settings, **fields)
    findings = [await doctor._check_model_setting(changed, row) for row in doctor.MODEL_SETTINGS]
    return {finding.part: finding for finding in findings}


async def test_every_model_setting_is_looked_at(services: Services, stores: Stores) -> None:
    parts = [finding.part for finding in await doctor.examine(stores.settings)]
    assert set(_SETTINGS) <= set(parts)
    assert "searxng" not in parts
    # The recogniser is reported by its setting, and not once more as an optional feature.
    assert len(parts) == len(set(parts))
    assert "speech" not in parts


async def test_a_hosted_model_is_ok_and_needs_a_key_of_each_tenant(stores: Stores) -> None:
    models = {
        "embedding_model": "text-embedding-3-small",
        "transcription_model": "groq/whisper-large-v3",
        "speech_model": "elevenlabs/eleven_multilingual_v2",
    }
    findings = await _check_models(stores.settings, **models)
    for part, provider in (
        ("embeddings", "openai"),
        ("transcription", "groq"),
        ("voice", "elevenlabs"),
    ):
        assert findings[part].state == "ok"
        assert findings[part].text == (
            f"{models[_SETTINGS[part]]}; each tenant needs a key of the provider {provider}"
        )


async def test_a_hosted_model_needs_nothing_that_is_installed_here(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    hosted = dict.fromkeys(_SETTINGS.values(), "openai/any")
    findings = await _check_models(stores.settings, **hosted)
    assert {finding.state for finding in findings.values()} == {"ok"}


async def test_an_embedded_model_is_ok_where_its_package_is_installed(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    findings = await _check_models(stores.settings)
    for part, setting in _SETTINGS.items():
        model = getattr(stores.settings, setting)
        assert (findings[part].state, findings[part].text) == ("ok", f"{model} is installed")


async def test_an_embedded_model_without_its_package_is_reported(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Speech recognition has no package on some platforms, so its lack is no problem."""
    monkeypatch.setattr(optional, "_reason_file", lambda _feature: tmp_path / "missing")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    findings = await _check_models(stores.settings)
    states = {part: finding.state for part, finding in findings.items()}
    assert states == {"embeddings": "BAD", "transcription": "off", "voice": "BAD"}
    for part, package in (
        ("embeddings", "wordllama"),
        ("transcription", "moonshine-voice"),
        ("voice", "espeakng-loader"),
    ):
        assert f"{package} is not installed" in findings[part].text
        assert f"PARLEY_{_SETTINGS[part].upper()}" in findings[part].fix


async def test_an_embedded_model_that_does_not_exist_is_a_problem(stores: Stores) -> None:
    finding = (await _check_models(stores.settings, embedding_model="local/other"))["embeddings"]
    assert (finding.state, "local/other" in finding.text) == ("BAD", True)
    assert "local/wordllama" in finding.fix


# SearXNG


@pytest.fixture
async def searxng() -> EngineServer:
    return EngineServer()


async def _check_searxng(stores: Stores, url: str) -> Finding:
    settings = msgspec.structs.replace(stores.settings, searxng_url=url)
    return await doctor._check_searxng(settings)


async def test_searxng_is_asked_for_one_small_search(stores: Stores, searxng: EngineServer) -> None:
    await searxng.start()
    finding = await _check_searxng(stores, searxng.url)
    await searxng.close()
    assert (finding.state, finding.text) == ("ok", f"{searxng.url} answers searches")
    (call,) = searxng.calls
    assert (call.path, call.query["format"]) == ("/search", "json")


async def test_a_searxng_that_cannot_search_is_a_warning_with_what_to_do(
    stores: Stores, searxng: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await searxng.start()
    # The answer of an instance whose settings do not allow JSON.
    searxng.status, searxng.body = 403, "Forbidden"
    findings = [await _check_searxng(stores, searxng.url)]
    searxng.hold = asyncio.Event()
    monkeypatch.setattr(doctor, "_TIMEOUT_SECONDS", 0.1)
    findings.append(await _check_searxng(stores, searxng.url))
    searxng.hold.set()
    await searxng.close()
    findings.append(await _check_searxng(stores, f"http://127.0.0.1:{free_port()}"))
    assert [finding.state for finding in findings] == ["warn"] * 3
    for finding, text in zip(findings, ("status 403", "within 0.1 s", "reached"), strict=True):
        assert text in finding.text
        assert "PARLEY_SEARXNG_URL" in finding.fix
        assert "json" in finding.fix


async def test_a_machine_that_is_short_of_memory_is_a_warning(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs of code wait there, although their sandbox works."""
    settings = msgspec.structs.replace(stores.settings, sandbox_min_free_mb=200)
    for free, state in ((300, "ok"), (100, "warn")):
        monkeypatch.setattr(machine_memory, "available_bytes", lambda free=free: free << 20)
        finding = await doctor._check_sandbox(settings)
        assert finding.state in {state, "BAD"}
    assert finding.state == "BAD" or "100 MB of memory are free" in finding.text


async def test_another_instance_at_the_address_is_no_good_sign(
    server: Server, stores: Stores
) -> None:
    own = msgspec.structs.replace(stores.settings, base_url=server.url)
    assert (await doctor._check_web(own)).state == "ok"
    other = msgspec.structs.replace(own, master_keys=Keyring.generate("other"))
    finding = await doctor._check_web(other)
    assert (finding.state, finding.text.endswith("belongs to another instance")) == ("BAD", True)
    assert "PARLEY_PORT" in finding.fix


async def test_the_mail_server_is_tried_without_a_mail(stores: Stores) -> None:
    async with run_smtp_server() as inbox:
        settings = inbox.configure(stores.settings)
        assert (await doctor._check_mail(settings)).state == "ok"
        assert inbox.received == []
    closed = msgspec.structs.replace(settings, smtp_url=f"smtp://127.0.0.1:{free_port()}")
    finding = await doctor._check_mail(closed)
    assert finding.state == "BAD"
    assert "PARLEY_SMTP_URL" in finding.fix


async def test_mail_in_a_folder_is_a_warning_where_others_reach_the_instance(
    stores: Stores,
) -> None:
    local = msgspec.structs.replace(stores.settings, base_url="http://127.0.0.1:8000")
    assert (await doctor._check_mail(local)).state == "ok"
    public = msgspec.structs.replace(local, base_url="https://parley.example.com")
    assert (await doctor._check_mail(public)).state == "warn"


async def test_the_demo_is_named(services: Services, stores: Stores) -> None:
    assert (await doctor._check_demo(stores.settings)).state == "off"
