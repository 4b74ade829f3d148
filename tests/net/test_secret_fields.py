"""Secret fields of configs: masks, the values that they stand for, and moves to other hosts."""

import pytest

from app.kit.errors import Invalid
from app.net.secret_fields import HEADERS, MASK, SecretFields

_FIELDS = SecretFields({"key"}.__contains__, {"headers": HEADERS})
_STORED = {"key": "k", "name": "n", "headers": {"X-Team": "blue", "Authorization": "a"}}


def test_a_mask_hides_the_secrets_and_sending_it_back_changes_nothing() -> None:
    masked = _FIELDS.mask(_STORED)
    assert masked == _STORED | {"key": MASK, "headers": {"X-Team": "blue", "Authorization": MASK}}
    assert _FIELDS.unmask(masked, _STORED, "config") == _STORED


def test_names_of_headers_are_compared_without_case() -> None:
    assert HEADERS.unmask({"AUTHORIZATION": MASK}, {"Authorization": "a"}, "headers") == {
        "AUTHORIZATION": "a"
    }


def test_a_mask_of_a_field_that_is_not_secret_is_a_value() -> None:
    config = {"name": MASK, "headers": {"X-Team": MASK}}
    assert _FIELDS.unmask(config, {}, "config") == config
    _FIELDS.check_move(config, "config")


def test_a_mask_without_a_stored_value_is_refused() -> None:
    with pytest.raises(Invalid) as error:
        _FIELDS.unmask({"headers": {"Cookie": MASK}}, _STORED, "config")
    assert error.value.details == {"config.headers.Cookie": "has no stored value to keep"}


def test_a_move_needs_each_secret_again() -> None:
    for config, name in (({"key": MASK}, "key"), ({"headers": {"Cookie": MASK}}, "headers.Cookie")):
        with pytest.raises(Invalid) as error:
            _FIELDS.check_move(config, "config")
        problems = {f"config.{name}": "must be entered again, because this leads to another host"}
        assert error.value.details == problems
    _FIELDS.check_move(_STORED, "config")


def test_secrets_are_listed_by_their_paths() -> None:
    assert _FIELDS.list_secrets(_STORED) == {"key": "k", "headers.Authorization": "a"}
    assert _FIELDS.list_secrets({"key": "", "headers": {"Cookie": ""}}) == {}
