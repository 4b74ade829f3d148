"""Connection tests of SSH credentials."""

import io
import json
import sys
from typing import Any

import asyncssh
import pytest

from app.domain.agents.vault import connection_tests, ssh_key_child
from app.domain.agents.vault.errors import ConnectionTestFailed
from app.domain.agents.vault.types import SshSecrets
from tests.agents.vault.connections import check_connection
from tests.agents.vault.servers import SshServer, export_private_key, export_public_key
from tests.ports import free_port
from tests.world import Client

pytestmark = pytest.mark.usefixtures("scripts_here")
# asyncssh would spend a second on each key.
_FEW_ROUNDS: dict[str, Any] = {"rounds": 2, "ignore_few_rounds": True}
# What `connection_tests` or the process that reads keys takes for an unreadable key.
_KEY_ERRORS = (asyncssh.KeyImportError, asyncssh.KeyEncryptionError, ValueError)


async def test_the_right_key_logs_in_by_ssh(admin: Client, ssh_server: SshServer) -> None:
    result = await check_connection(admin, "ssh", ssh_server.secrets())
    assert result["success"] is True
    assert "set host_key to pin it" in result["message"]


async def test_the_right_key_and_the_pinned_server_log_in(
    admin: Client, ssh_server: SshServer
) -> None:
    result = await check_connection(
        admin, "ssh", ssh_server.secrets(host_key=export_public_key(ssh_server.host_key))
    )
    assert (result["success"], result["message"]) == (True, "Handshake and login worked")


async def test_a_key_that_the_server_does_not_accept_fails_the_test(
    admin: Client, ssh_server: SshServer
) -> None:
    other = export_private_key(asyncssh.generate_private_key("ssh-ed25519"))
    result = await check_connection(admin, "ssh", ssh_server.secrets(private_key=other))
    assert (result["success"], result["message"]) == (False, "the server rejected this key")


async def test_a_different_host_key_fails_the_test(admin: Client, ssh_server: SshServer) -> None:
    other = export_public_key(asyncssh.generate_private_key("ssh-ed25519"))
    result = await check_connection(admin, "ssh", ssh_server.secrets(host_key=other))
    assert (result["success"], result["message"]) == (False, "the server has a different host key")


async def test_an_invalid_host_key_fails_the_test(admin: Client, ssh_server: SshServer) -> None:
    result = await check_connection(admin, "ssh", ssh_server.secrets(host_key="nonsense"))
    assert (result["success"], result["message"]) == (False, "host_key is not a public key")


def test_a_host_key_that_is_not_a_public_key_is_refused(subtests: pytest.Subtests) -> None:
    for host_key in ("nonsense", "ssh-ed25519 AAAA", "ssh-ed25519"):
        with subtests.test(host_key):
            secrets = SshSecrets(host="a", username="a", private_key="a", host_key=host_key)
            with pytest.raises(ConnectionTestFailed, match="host_key is not a public key"):
                connection_tests._build_known_hosts(secrets)


async def test_an_encrypted_key_is_read_in_a_process_and_logs_in_with_its_passphrase(
    admin: Client, ssh_server: SshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    key = export_private_key(ssh_server.key, "right-phrase")
    secrets = ssh_server.secrets(private_key=key, passphrase="right-phrase")
    assert (await check_connection(admin, "ssh", secrets))["success"] is True


async def test_a_key_that_cannot_be_read_fails_the_test(
    admin: Client, ssh_server: SshServer
) -> None:
    result = await check_connection(admin, "ssh", ssh_server.secrets(private_key="nonsense"))
    assert result["success"] is False
    assert "cannot be read; is the passphrase right?" in result["message"]


def _read_key(monkeypatch: pytest.MonkeyPatch, key: str, passphrase: str = "") -> asyncssh.SSHKey:
    """Runs the script that reads keys in this process, with its errors."""
    output = io.StringIO()
    monkeypatch.setattr(
        sys, "stdin", io.StringIO(json.dumps({"key": key, "passphrase": passphrase}))
    )
    monkeypatch.setattr(sys, "stdout", output)
    ssh_key_child.main()
    return asyncssh.import_private_key(output.getvalue())


def test_a_key_is_read_only_with_its_passphrase(
    ssh_server: SshServer, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    keys = {
        "PKCS #8": export_private_key(ssh_server.key, "right-phrase"),
        "ssh-keygen": ssh_server.key.export_private_key(
            "openssh", "right-phrase", **_FEW_ROUNDS
        ).decode(),
    }
    assert "BEGIN OPENSSH PRIVATE KEY" in keys["ssh-keygen"]
    for name, key in keys.items():
        with subtests.test(name):
            read_key = _read_key(monkeypatch, key, "right-phrase")
            assert read_key.public_data == ssh_server.key.public_data
        for passphrase in ("wrong-phrase", ""):
            with subtests.test(name, passphrase=passphrase), pytest.raises(_KEY_ERRORS):
                _read_key(monkeypatch, key, passphrase)


def test_other_texts_are_not_read_as_a_private_key(
    ssh_server: SshServer, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    texts = {
        "nonsense": "nonsense",
        "nothing in it": "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n",
        "a public key": export_public_key(ssh_server.key),
    }
    for name, text in texts.items():
        with subtests.test(name), pytest.raises(_KEY_ERRORS):
            _read_key(monkeypatch, text)


async def test_an_unreachable_ssh_server_fails_the_test(
    admin: Client, ssh_server: SshServer
) -> None:
    result = await check_connection(admin, "ssh", ssh_server.secrets(port=free_port()))
    assert result["success"] is False
    assert result["message"].endswith(" refused the connection")


_PASSPHRASE = "pässword"
_KEY_FORMATS: list[tuple[str, str, dict[str, Any]]] = [
    (
        "ssh-rsa",
        "pkcs8-pem",
        {
            "passphrase": _PASSPHRASE,
            "cipher_name": "des3-cbc",
            "hash_name": "sha1",
            "pbe_version": 1,
        },
    ),
    ("ecdsa-sha2-nistp256", "pkcs1-pem", {"passphrase": _PASSPHRASE, "cipher_name": "aes256-cbc"}),
    ("ssh-ed25519", "openssh", {"passphrase": _PASSPHRASE, **_FEW_ROUNDS}),
    ("ecdsa-sha2-nistp521", "pkcs8-pem", {}),
]


def test_keys_of_other_formats_are_read(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    for algorithm, format_name, options in _KEY_FORMATS:
        with subtests.test(algorithm=algorithm, format=format_name):
            key = asyncssh.generate_private_key(algorithm)
            text = key.export_private_key(format_name, **options).decode()
            passphrase = options.get("passphrase", "")
            assert _read_key(monkeypatch, text, passphrase).public_data == key.public_data


async def test_the_process_that_reads_keys_has_loaded_what_encrypted_keys_need(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    monkeypatch.undo()
    key = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
    for _, format_name, options in _KEY_FORMATS[1:3]:
        with subtests.test(format_name):
            text = key.export_private_key(format_name, **options).decode()
            secrets = SshSecrets(
                host="a.example", username="a", private_key=text, passphrase=_PASSPHRASE
            )
            output = await connection_tests._read_private_key(secrets)
            assert asyncssh.import_private_key(output).public_data == key.public_data
