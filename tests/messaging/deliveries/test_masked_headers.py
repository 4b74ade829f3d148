"""The cache of masked headers: its size, its keys, and results that cannot change it."""

import pytest

from app.crypto.keyring import Keyring
from app.domain.messaging.deliveries import endpoint_keys, endpoints
from app.domain.messaging.deliveries.endpoint_keys import EndpointKeys

_LARGE = {f"X-{number}": "x" * 400 for number in range(20)}


@pytest.fixture
def keyring() -> Keyring:
    return Keyring.parse(Keyring.generate("test"))


def _mask(keyring: Keyring, webhook_id: str, headers: dict[str, str]) -> dict[str, str]:
    keys = EndpointKeys("secret", headers=headers)
    sealed = endpoint_keys.seal(keyring, "ten_1", webhook_id, keys)
    return endpoints.masked_headers(keyring, "ten_1", webhook_id, sealed)


def test_a_changed_result_does_not_change_the_next(keyring: Keyring) -> None:
    keys = EndpointKeys("secret", headers={"X-Name": "value"})
    sealed = endpoint_keys.seal(keyring, "ten_1", "whk_1", keys)
    first = endpoints.masked_headers(keyring, "ten_1", "whk_1", sealed)
    first["X-Name"] = "changed"
    assert endpoints.masked_headers(keyring, "ten_1", "whk_1", sealed) == {"X-Name": "value"}


def test_an_entry_serves_one_endpoint_of_one_tenant(keyring: Keyring) -> None:
    keys = EndpointKeys("secret", headers={"X-Name": "value"})
    sealed = endpoint_keys.seal(keyring, "ten_1", "whk_1", keys)
    assert endpoints.masked_headers(keyring, "ten_1", "whk_1", sealed)
    assert endpoints.masked_headers(keyring, "ten_1", "whk_2", sealed) == {}
    assert endpoints.masked_headers(keyring, "ten_2", "whk_1", sealed) == {}


def test_the_cache_has_few_megabytes(keyring: Keyring) -> None:
    limits = endpoints._mask_small.cache_parameters()
    assert limits["maxsize"] * endpoints._MAX_CACHED_BYTES <= 2 * 1024 * 1024
    before = endpoints._mask_small.cache_info()
    assert _mask(keyring, "whk_2", _LARGE) == _LARGE
    assert endpoints._mask_small.cache_info() == before
