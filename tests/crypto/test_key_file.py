"""The root keys: where they come from, and how running processes learn of a new one."""

import os
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from app.crypto import key_file, rotation
from app.crypto import keyring as keyrings
from app.crypto.keyring import CannotOpen, KeyProblem, Keyring, kid_of
from app.domain.platform.mail import service as mail
from app.settings import Settings
from tests.crypto.root_keys import CONTEXT, LOST_ONLY, NEW, NEW_AND_OLD, OLD, OLD_ONLY

# The key file


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of embedded mode: the keys are in a file."""
    return Settings(data_dir=tmp_path / "data")


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_written_key_file_is_for_its_owner_alone(settings: Settings) -> None:
    key_file.write(settings, [NEW])
    path = key_file.key_file(settings)
    assert (_mode(path), _mode(path.parent)) == (0o600, 0o700)


def test_rewriting_a_key_file_that_was_open_to_others_closes_it(settings: Settings) -> None:
    key_file.write(settings, [OLD])
    key_file.key_file(settings).chmod(0o644)
    key_file.write(settings, [NEW])
    assert _mode(key_file.key_file(settings)) == 0o600


def test_writing_leaves_nothing_but_the_key_file(settings: Settings) -> None:
    key_file.write(settings, [OLD])
    key_file.write(settings, [NEW, OLD])
    path = key_file.key_file(settings)
    assert list(path.parent.iterdir()) == [path]


def test_a_written_key_file_is_read_in_order(settings: Settings) -> None:
    key_file.write(settings, [NEW, OLD])
    assert key_file.load(settings).kids == ["new", "old"]


def test_a_key_file_open_to_others_is_refused(
    settings: Settings, subtests: pytest.Subtests
) -> None:
    for mode in (0o640, 0o620, 0o604, 0o644, 0o666, 0o601):
        with subtests.test(mode=mode):
            key_file.write(settings, [NEW])
            key_file.key_file(settings).chmod(mode)
            with pytest.raises(KeyProblem, match="chmod 600"):
                key_file.load(settings)


def test_a_missing_key_names_the_variable_and_the_file(settings: Settings) -> None:
    with pytest.raises(KeyProblem) as raised:
        key_file.load(settings)
    assert "PARLEY_MASTER_KEYS" in str(raised.value)
    assert str(key_file.key_file(settings)) in str(raised.value)


def test_a_damaged_key_file_is_refused_by_name(
    settings: Settings, subtests: pytest.Subtests
) -> None:
    for content in (b"", b"\n", b"k1", b"k1:YWJj\n", b"k1:\xc3\xa9\n", b"\xff"):
        with subtests.test(content=content):
            key_file.write(settings, [NEW])
            key_file.key_file(settings).write_bytes(content)
            with pytest.raises(KeyProblem, match=r"master\.keys"):
                key_file.load(settings)


def test_the_variable_comes_before_the_file(settings: Settings) -> None:
    key_file.write(settings, [OLD])
    settings_with_keys = msgspec.structs.replace(settings, master_keys=NEW)
    assert key_file.load(settings_with_keys).kids == ["new"]


def test_an_error_names_the_variable_and_not_its_value(
    settings: Settings, subtests: pytest.Subtests
) -> None:
    for value in ("k1", "k1:aHVudGVyMg==", "k1:hunter2!", f"{NEW},{NEW}"):
        with subtests.test(value=value):
            settings_with_keys = msgspec.structs.replace(settings, master_keys=value)
            with pytest.raises(KeyProblem, match="PARLEY_MASTER_KEYS") as raised:
                key_file.load(settings_with_keys)
            message = str(raised.value).replace("PARLEY_MASTER_KEYS", "")
            assert value.rpartition(":")[2] not in message


def test_the_first_start_creates_a_key(settings: Settings) -> None:
    key_file.ensure(settings, data_exists=False)
    assert key_file.load(settings).kids == ["k1"]


def test_later_starts_keep_the_key(settings: Settings) -> None:
    key_file.ensure(settings, data_exists=False)
    first = key_file.key_file(settings).read_text()
    key_file.ensure(settings, data_exists=True)
    assert key_file.key_file(settings).read_text() == first


def test_no_key_is_created_for_data_that_it_cannot_open(settings: Settings) -> None:
    with pytest.raises(KeyProblem):
        key_file.ensure(settings, data_exists=True)
    assert not key_file.key_file(settings).exists()


def test_no_key_is_created_for_an_external_database(settings: Settings) -> None:
    outside = msgspec.structs.replace(settings, database_url="postgresql://db.test/parley")
    with pytest.raises(KeyProblem):
        key_file.ensure(outside, data_exists=False)
    assert not key_file.key_file(outside).exists()


def test_no_key_is_created_when_the_variable_has_one(settings: Settings) -> None:
    settings_with_keys = msgspec.structs.replace(settings, master_keys=NEW)
    key_file.ensure(settings_with_keys, data_exists=False)
    assert not key_file.key_file(settings_with_keys).exists()


# A new active key


def test_in_embedded_mode_a_new_key_is_put_before_the_old_ones(settings: Settings) -> None:
    key_file.write(settings, [OLD])
    new_keyring = rotation.new_active_key(settings, OLD_ONLY)
    assert new_keyring.active != "old"
    assert new_keyring.kids[1:] == ["old"]


def test_in_embedded_mode_the_new_key_is_in_the_file(settings: Settings) -> None:
    key_file.write(settings, [OLD])
    new_keyring = rotation.new_active_key(settings, OLD_ONLY)
    assert key_file.load(settings).kids == new_keyring.kids


def test_a_second_new_key_keeps_the_former_ones(settings: Settings) -> None:
    key_file.write(settings, [OLD])
    first = rotation.new_active_key(settings, OLD_ONLY)
    assert len(rotation.new_active_key(settings, first).kids) == 3


def test_with_the_variable_the_operator_has_put_the_new_key_first(settings: Settings) -> None:
    settings_with_keys = msgspec.structs.replace(settings, master_keys=f"{NEW},{OLD}")
    assert rotation.new_active_key(settings_with_keys, NEW_AND_OLD) is NEW_AND_OLD


# A process that serves requests while `parley keys rotate` runs


def _load_keyring(settings: Settings) -> Keyring:
    """Returns a keyring that was read from the file long ago."""
    key_file.write(settings, [OLD])
    os.utime(key_file.key_file(settings), (1, 1))
    return key_file.load(settings)


@pytest.fixture
def serving(settings: Settings) -> Keyring:
    """A keyring that was read from the file before the test."""
    return _load_keyring(settings)


def test_a_running_process_opens_values_that_another_sealed_with_a_new_key(
    settings: Settings, serving: Keyring
) -> None:
    sealed = serving.seal(b"text", CONTEXT)
    rewrapped = rotation.new_active_key(settings, key_file.load(settings)).rewrap(sealed, CONTEXT)
    assert serving.open(rewrapped, CONTEXT) == b"text"


def test_a_process_that_has_read_the_new_key_seals_with_it(
    settings: Settings, serving: Keyring
) -> None:
    new_keyring = rotation.new_active_key(settings, key_file.load(settings))
    serving.open(new_keyring.seal(b"text", CONTEXT), CONTEXT)
    assert kid_of(serving.seal(b"text", CONTEXT)) == new_keyring.active


def test_a_process_that_has_read_the_new_key_still_opens_with_the_old_one(
    settings: Settings, serving: Keyring
) -> None:
    sealed = serving.seal(b"old", CONTEXT)
    new_keyring = rotation.new_active_key(settings, key_file.load(settings))
    serving.open(new_keyring.seal(b"new", CONTEXT), CONTEXT)
    assert serving.open(sealed, CONTEXT) == b"old"


def test_a_running_process_seals_with_a_new_key_without_having_met_it(
    settings: Settings, serving: Keyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "_reload_at", 0.0)
    new_keyring = rotation.new_active_key(settings, key_file.load(settings))
    assert kid_of(serving.seal(b"text", CONTEXT)) == new_keyring.active


def test_a_snapshot_keeps_its_active_key(
    settings: Settings, serving: Keyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyrings, "RELOAD_SECONDS", 0.0)
    rotation.new_active_key(settings, key_file.load(settings))
    assert serving.snapshot().active == "old"


def test_many_values_are_sealed_without_looking_at_the_key_file_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keyrings, "RELOAD_SECONDS", 3600.0)
    looks: list[None] = []
    keyring = Keyring.parse(OLD, lambda: looks.append(None))
    for seconds_ago in (0, 3601):
        monkeypatch.setattr(keyring, "_reload_at", keyring._reload_at - seconds_ago)
        for _ in range(10):
            keyring.seal(b"text", CONTEXT)
    assert len(looks) == 1


def test_of_two_rotations_of_the_key_file_one_is_refused(settings: Settings) -> None:
    key_file.write(settings, [OLD])
    with (
        key_file.lock_key_file(settings),
        pytest.raises(KeyProblem, match="another rotation is under way"),
        key_file.lock_key_file(settings),
    ):
        pass


DAMAGED = [b"", b"\n", b"nothing", b"lost:YWJj\n", b"lost:!!!\n", b"\xff"]


def test_an_unknown_key_with_a_damaged_file_cannot_be_opened(
    settings: Settings, subtests: pytest.Subtests
) -> None:
    for content in DAMAGED:
        serving = _load_keyring(settings)
        with subtests.test(content=content):
            key_file.key_file(settings).write_bytes(content)
            with pytest.raises(CannotOpen):
                serving.open(LOST_ONLY.seal(b"text", CONTEXT), CONTEXT)


def test_a_damaged_file_removes_no_key_from_a_running_process(
    settings: Settings, subtests: pytest.Subtests
) -> None:
    for content in DAMAGED:
        serving = _load_keyring(settings)
        with subtests.test(content=content):
            key_file.key_file(settings).write_bytes(content)
            with suppress(CannotOpen):
                serving.open(LOST_ONLY.seal(b"text", CONTEXT), CONTEXT)
            other = mail.seal_context("ten_2", "mal_2")
            assert serving.open(OLD_ONLY.seal(b"text", other), other) == b"text"


def test_a_process_keeps_its_keys_when_the_key_file_is_deleted(
    settings: Settings, serving: Keyring
) -> None:
    key_file.key_file(settings).unlink()
    with pytest.raises(CannotOpen):
        serving.open(LOST_ONLY.seal(b"text", CONTEXT), CONTEXT)
