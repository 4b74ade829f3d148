"""Hosts of a credential: which entries `allowed_hosts` takes, and which hosts they allow."""

import pytest

from app.domain.agents.vault import destinations
from app.net.egress import BlockedAddress, Guard
from tests.agents.vault.api import PATH, read_invalid_fields
from tests.agents.vault.factories import build_body, create_credential
from tests.world import Client

_GUARD = Guard(["127.0.0.0/8", "localhost", "::1/128"])
_ALLOWED = ["API.example.com", "bücher.example", "127.0.0.1", "2001:DB8:0::1", "[::1]"]
_ALLOWED_URLS = [
    "https://api.example.com/",
    "https://API.EXAMPLE.COM/",
    "https://api.example.com./",
    "https://api.example.com:8443/",
    "https://bücher.example/",
    "https://BÜCHER.example/",
    "https://xn--bcher-kva.example/",
    "https://127.0.0.1/",
    "https://[::1]/",
    "https://[0:0::1]/",
]
_OTHER_URLS = [
    "https://example.com/",
    "https://api.example.com.evil.example/",
    "https://evil.example/api.example.com",
    "https://evil.example?api.example.com",
    "https://sub.api.example.com/",
    "https://xapi.example.com/",
    "https://bucher.example/",
    "https://127.0.0.2/",
    "https://127.1/",
    "https://2130706433/",
    "https://localhost/",
]


def _is_allowed(url: str) -> bool:
    host = _GUARD.check_url(url).raw_host or ""
    metadata = {"allowed_hosts": _ALLOWED}
    return destinations.find_refusal(metadata, "bearer_token", host) is None


def test_only_the_allowed_hosts_of_a_url_receive_the_secrets() -> None:
    assert [url for url in _ALLOWED_URLS if not _is_allowed(url)] == []
    assert [url for url in _OTHER_URLS if _is_allowed(url)] == []


@pytest.mark.parametrize(
    "url", ["https://api.example.com@evil.example/", "https://evil.example\\@api.example.com/"]
)
def test_a_url_that_may_be_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(BlockedAddress):
        _is_allowed(url)


# Metadata, type of the credential and host.
_ALLOWED_HOSTS: list[tuple[list[str] | None, str, str]] = [
    (None, "bearer_token", "anything"),
    (["db.example.com"], "database", ""),
    (["db.example.com"], "database", "DB.example.com."),
]
_OTHER_HOSTS: list[tuple[list[str] | None, str, str]] = [
    ([], "bearer_token", "api.example.com"),
    (["db.example.com"], "database", "evil.example"),
    (["db.example.com"], "basic_auth", ""),
    # Name servers may read such a name in another way than browsers do.
    (["xn--fa-hia.example"], "basic_auth", "faß.example"),
    # Entries of before that were never a host.
    (["*"], "bearer_token", "api.example.com"),
    (["*.example.com"], "bearer_token", "api.example.com"),
    ([""], "bearer_token", ""),
    (["https://api.example.com"], "bearer_token", "https"),
]


def test_hosts_without_a_url_are_compared_too() -> None:
    def find_refusal(case: tuple[list[str] | None, str, str]) -> str | None:
        allowed, type_, host = case
        return destinations.find_refusal({"allowed_hosts": allowed}, type_, host)

    assert [case for case in _ALLOWED_HOSTS if find_refusal(case) is not None] == []
    assert [case for case in _OTHER_HOSTS if find_refusal(case) is None] == []


_NO_HOSTS = [
    "*",
    "*.example.com",
    "https://api.example.com",
    "api.example.com:443",
    "api.example.com/v1",
    "user@api.example.com",
    "api example.com",
    "a..b",
    ".",
    "ex\u200bample.com",
]


async def test_an_entry_that_is_no_host_is_named_by_its_index(
    admin: Client, subtests: pytest.Subtests
) -> None:
    for entry in _NO_HOSTS:
        with subtests.test(entry=entry):
            metadata = {"allowed_hosts": ["ok.example.com", entry]}
            answer = await admin.post(PATH, build_body(metadata=metadata))
            fields = read_invalid_fields(answer)
            assert set(fields) == {"metadata.allowed_hosts.1"}
            assert "host name" in fields["metadata.allowed_hosts.1"]


async def test_hosts_are_shown_as_they_were_sent(admin: Client) -> None:
    credential = await create_credential(admin, metadata={"allowed_hosts": _ALLOWED})
    assert credential["metadata"] == {"allowed_hosts": _ALLOWED}
