"""Connection tests of SSH credentials."""

from typing import Any

import asyncssh
import pytest

from app.domain.vault import connection_tests
from app.domain.vault.types import SshSecrets
from tests.ports import free_port
from tests.vault.connections import check_connection
from tests.vault.servers import SshServer, export_private_key, export_public_key
from tests.world import Client


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


@pytest.mark.parametrize("host_key", ["nonsense", "ssh-ed25519 AAAA", "ssh-ed25519"])
async def test_an_invalid_host_key_fails_the_test(
    admin: Client, ssh_server: SshServer, host_key: str
) -> None:
    result = await check_connection(admin, "ssh", ssh_server.secrets(host_key=host_key))
    assert (result["success"], result["message"]) == (False, "host_key is not a public key")


@pytest.mark.parametrize(
    ("passphrase", "success"), [("right-phrase", True), ("wrong-phrase", False), ("", False)]
)
async def test_an_encrypted_key_opens_only_with_its_passphrase(
    admin: Client, ssh_server: SshServer, passphrase: str, *, success: bool
) -> None:
    secrets = ssh_server.secrets(
        private_key=export_private_key(ssh_server.key, "right-phrase"), passphrase=passphrase
    )
    result = await check_connection(admin, "ssh", secrets)
    assert result["success"] is success, result
    if not success:
        assert "is the passphrase right?" in result["message"]


async def test_a_key_encrypted_by_ssh_keygen_opens_with_its_passphrase(
    admin: Client, ssh_server: SshServer
) -> None:
    encrypted_key = ssh_server.key.export_private_key("openssh", passphrase="right-phrase").decode()
    assert "BEGIN OPENSSH PRIVATE KEY" in encrypted_key
    secrets = ssh_server.secrets(private_key=encrypted_key, passphrase="right-phrase")
    assert (await check_connection(admin, "ssh", secrets))["success"] is True


@pytest.mark.parametrize("key", ["nonsense", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n"])
async def test_an_invalid_private_key_fails_the_test(
    admin: Client, ssh_server: SshServer, key: str
) -> None:
    result = await check_connection(admin, "ssh", ssh_server.secrets(private_key=key))
    assert result["success"] is False
    assert "cannot be read" in result["message"]


async def test_a_public_key_as_private_key_fails_the_test(
    admin: Client, ssh_server: SshServer
) -> None:
    result = await check_connection(
        admin, "ssh", ssh_server.secrets(private_key=export_public_key(ssh_server.key))
    )
    assert result["success"] is False


async def test_an_unreachable_ssh_server_fails_the_test(
    admin: Client, ssh_server: SshServer
) -> None:
    result = await check_connection(admin, "ssh", ssh_server.secrets(port=free_port()))
    assert result["success"] is False
    assert result["message"].startswith("no session with the server")


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
    ("ssh-ed25519", "openssh", {"passphrase": _PASSPHRASE}),
    ("ecdsa-sha2-nistp521", "pkcs8-pem", {}),
]


async def test_keys_of_other_formats_are_read(subtests: pytest.Subtests) -> None:
    for algorithm, format_name, options in _KEY_FORMATS:
        with subtests.test(algorithm=algorithm, format=format_name):
            key = asyncssh.generate_private_key(algorithm)
            text = key.export_private_key(format_name, **options).decode()
            secrets = SshSecrets(
                host="a.example",
                username="a",
                private_key=text,
                passphrase=options.get("passphrase", ""),
            )
            output = await connection_tests._read_private_key(secrets)
            assert asyncssh.import_private_key(output).public_data == key.public_data
