"""Configs of channels: their schema, their validation, their masks and their moves."""

from collections.abc import Callable
from typing import Any

import pytest

from app.domain.messaging.notifications import configs
from app.domain.messaging.notifications.errors import InvalidConfig
from app.domain.messaging.notifications.providers.protocol import ProviderConfig, SendFailed
from app.domain.messaging.notifications.providers.registry import PROVIDERS
from app.net.egress import Guard
from app.net.secret_fields import MASK
from tests.messaging.notifications.provider_server import STUBS

_SID = "AC" + "0123456789abcdef" * 2
_SLACK_URL = "https://hooks.slack.com/services/T00000000/B00000000/plantedXXXXXXXXXXXXX"
# A complete config of each provider; its secrets contain `planted`.
_FULL: dict[str, dict[str, Any]] = {
    **{name: stub.config("https://api.example.com") for name, stub in STUBS.items()},
    "smtp": {
        "host": "mail.example.com",
        "port": 465,
        "username": "parley",
        "password": "planted password",
        "use_tls": True,
        "from": "Ann <ann@example.com>",
        "to": ["bob@example.com"],
    },
    "sendgrid": {"api_key": "planted-1", "from": "ann@example.com"},
    "mailgun": {"api_key": "planted-2", "domain": "mg.example.com", "from": "ann@example.com"},
    "resend": {"api_key": "planted-3", "from": "ann@example.com"},
    "slack_webhook": {"webhook_url": _SLACK_URL},
    "slack_bot": {"token": "planted-4", "channel": "#ops"},
    "webhook": {
        "url": "https://shop.example.com/hook",
        "method": "PUT",
        "headers": {"X-Team": "blue", "Authorization": "planted-5"},
        "secret": "planted-6",
    },
    "twilio": {"account_sid": _SID, "auth_token": "planted-7", "from": "+14155550100"},
    "vonage": {"api_key": "abcd1234", "api_secret": "planted-8", "from": "Parley"},
    "in_app": {"to": ["usr_1"]},
}
_SECRETS = {
    "smtp": ["password"],
    **{name: stub.secrets for name, stub in STUBS.items()},
    "in_app": list[str](),
}
_GUARD = Guard(())


def _validate(provider: str, values: dict[str, Any]) -> ProviderConfig:
    return configs.validate(PROVIDERS[provider], values, _GUARD)


def _find_problems(function: Callable[..., object], *args: object) -> dict[str, str]:
    """Calls a function that must raise InvalidConfig, and returns its details."""
    with pytest.raises(InvalidConfig) as error:
        function(*args)
    assert (error.value.status, error.value.code) == (422, "invalid_config")
    problems: dict[str, str] = error.value.details or {}
    name, problem = next(iter(problems.items()))
    assert error.value.message.startswith(f"{name}: {problem}")
    return problems


def test_the_schema_of_each_provider(subtests: pytest.Subtests) -> None:
    text, needed = {"type": "string", "required": False}, {"type": "string", "required": True}
    secret = needed | {"secret": True}
    schemas = {
        "smtp": {
            "host": needed,
            "port": {"type": "integer", "required": False},
            "username": text,
            "password": text | {"secret": True},
            "use_tls": {"type": "boolean", "required": False},
            "from": needed,
        },
        "webhook": {
            "url": needed,
            "method": text,
            "headers": {"type": "object", "required": False},
            "secret": text | {"secret": True},
        },
        "in_app": {},
    }
    for name, stub in STUBS.items():
        keys = {key: secret if key in stub.secrets else needed for key in stub.config("")}
        schemas.setdefault(name, keys | ({"api_base": text} if stub.api_base else {}))
    assert PROVIDERS.keys() == schemas.keys()
    for name, schema in schemas.items():
        with subtests.test(provider=name):
            recipients = {"to": {"type": "array", "required": False}}
            assert configs.build_schema(PROVIDERS[name]) == schema | recipients


def test_providers_by_type_of_channel() -> None:
    types = {name: stub.type for name, stub in STUBS.items()}
    types |= {"smtp": "email", "in_app": "in_app"}
    assert {provider.id: provider.channel_type for provider in PROVIDERS.values()} == types


def test_the_hosted_services_have_their_public_addresses() -> None:
    for name, stub in STUBS.items():
        values = {key: value for key, value in _FULL[name].items() if key != "api_base"}
        assert getattr(_validate(name, values), "api_base", None) == stub.api_base


def test_recipients_are_the_default_ones_or_the_only_place(subtests: pytest.Subtests) -> None:
    only = {
        "slack_webhook": "hooks.slack.com",
        "webhook": "https://shop.example.com",
        **{name: _FULL[name][stub.place] for name, stub in STUBS.items() if stub.place},
    }
    for name, provider in PROVIDERS.items():
        with subtests.test(provider=name):
            config = _validate(name, _FULL[name])
            expected = [only[name]] if name in only else _FULL[name].get("to", [])
            assert provider.recipients(config) == expected
    config = _validate("webhook", {"url": "https://shop.example.com:8443/secret-path?key=1"})
    assert PROVIDERS["webhook"].recipients(config) == ["https://shop.example.com:8443"]


# Validation


def test_a_missing_and_an_unknown_key_are_named(subtests: pytest.Subtests) -> None:
    for name, provider in PROVIDERS.items():
        schema = configs.build_schema(provider)
        for key in (key for key, rule in schema.items() if rule["required"]):
            with subtests.test(provider=name, missing=key):
                values = {other: value for other, value in _FULL[name].items() if other != key}
                problems = _find_problems(_validate, name, values)
                assert problems == {f"config.{key}": "is required"}
        with subtests.test(provider=name, unknown=True):
            values = _FULL[name] | {"colour": "planted"}
            problems = _find_problems(_validate, name, values)
            assert problems["config.colour"].startswith("is not a known field; use one of: to")


def test_a_wrong_type_of_any_key_is_named_without_the_value(subtests: pytest.Subtests) -> None:
    for name, provider in PROVIDERS.items():
        for key, rule in configs.build_schema(provider).items():
            wrong_values: list[Any] = [None, {"planted": "planted"}, ["planted", 7], 1.5, "planted"]
            if rule["type"] == "string":
                wrong_values = [None, 7, True, ["planted"], ""]
            for value in wrong_values:
                if rule["type"] == "object" and isinstance(value, dict):
                    continue
                with subtests.test(provider=name, key=key, value=value):
                    problems = _find_problems(_validate, name, _FULL[name] | {key: value})
                    assert all(field.startswith(f"config.{key}") for field in problems)
                    assert "planted" not in str(problems)


_EMAIL = "must be an address like ann@example.com or Ann <ann@example.com>"
_URL = "must be a URL without a query and a fragment"
_NUMBER = "must be a phone number with its country code, like +14155550100"
_TOKEN = "must be printable ASCII without spaces"
_DOMAIN = "must be a domain name"
_HOST = "must be the name or the address of a host"
_SPACES = "must not contain spaces or control characters"
_NOT_PUBLIC = (
    "is not a public address; the operator of this instance can allow it with PARLEY_EGRESS_ALLOW"
)


_SCHEME = "the address must start with http:// or https://"
_NO_LOGIN = "the address must not carry a user name or password"
_OWN_HEADER = "is set by the service and cannot be replaced"
_HEADER_VALUE = "must be one line of at most 4096 printable characters"
_ACCOUNT = "must be AC and 32 hexadecimal digits"
_CASES: list[tuple[str, str, Any, str, str]] = [
    ("smtp", "host", "mail example", "host", _HOST),
    ("smtp", "host", "mail.example.com/x", "host", _HOST),
    ("smtp", "host", "mail.example.com\n", "host", _HOST),
    ("smtp", "port", 0, "port", "must be at least 1"),
    ("smtp", "port", 65536, "port", "must be at most 65,535"),
    ("smtp", "from", "planted", "from", _EMAIL),
    ("smtp", "to", ["bob@example.com", "planted"], "to.1", "is not an e-mail address"),
    ("sendgrid", "from", "a@b.example, c@d.example", "from", _EMAIL),
    ("sendgrid", "api_key", "planted\r\nX: y", "api_key", _TOKEN),
    ("sendgrid", "to", [], "to", "must not be empty"),
    ("sendgrid", "to", "bob@example.com", "to", "must be a list"),
    ("sendgrid", "api_base", "https://planted.example?x=", "api_base", _URL),
    ("sendgrid", "api_base", "https://planted.example#x", "api_base", _URL),
    ("sendgrid", "api_base", "planted.example", "api_base", _URL),
    ("sendgrid", "api_base", "http://planted.example", "api_base", "must start with https://"),
    ("sendgrid", "api_base", "https://127.0.0.1:8080", "api_base", _NOT_PUBLIC),
    ("mailgun", "domain", "..", "domain", _DOMAIN),
    ("mailgun", "domain", "planted/../x", "domain", _DOMAIN),
    ("mailgun", "domain", "mg.example.com\n", "domain", _DOMAIN),
    ("resend", "to", ["planted"], "to.0", "is not an e-mail address"),
    ("slack_webhook", "webhook_url", "planted", "webhook_url", _SCHEME),
    ("slack_webhook", "webhook_url", "https://a.example/ planted", "webhook_url", _SPACES),
    ("slack_webhook", "webhook_url", "https://10.0.0.1/planted", "webhook_url", _NOT_PUBLIC),
    ("slack_bot", "token", "planted token", "token", _TOKEN),
    ("slack_bot", "channel", "a\nb", "channel", "must be one line of text that is not blank"),
    ("webhook", "url", "https://planted:planted@a.example", "url", _NO_LOGIN),
    ("webhook", "url", "https://2130706433/", "url", _NOT_PUBLIC),
    ("webhook", "method", "GET", "method", "must be one of POST, PUT, PATCH"),
    ("webhook", "headers", {"Host": "planted"}, "headers.Host", _OWN_HEADER),
    (
        "webhook",
        "headers",
        {"X-Service-Signature": "planted"},
        "headers.X-Service-Signature",
        _OWN_HEADER,
    ),
    ("webhook", "headers", {"X-A": "planted\r\nX-B: c"}, "headers.X-A", _HEADER_VALUE),
    ("webhook", "headers", {"X-A": 7}, "headers.X-A", "must be a string"),
    ("twilio", "account_sid", "AC../../planted", "account_sid", _ACCOUNT),
    ("twilio", "account_sid", _SID + "\n", "account_sid", _ACCOUNT),
    ("twilio", "to", ["planted"], "to.0", _NUMBER),
    ("vonage", "to", ["+14155550100", "0123"], "to.1", _NUMBER),
]


def test_an_invalid_value_is_named_with_its_problem_only(subtests: pytest.Subtests) -> None:
    for provider, key, value, field, problem in _CASES:
        with subtests.test(provider=provider, key=key):
            problems = _find_problems(_validate, provider, _FULL[provider] | {key: value})
            assert problems == {f"config.{field}": problem}


@pytest.mark.parametrize(("key", "missing"), [("username", "password"), ("password", "username")])
def test_a_login_has_a_name_and_a_password(key: str, missing: str) -> None:
    values = {other: value for other, value in _FULL["smtp"].items() if other != missing}
    assert key in values
    problems = _find_problems(_validate, "smtp", values)
    assert problems == {f"config.{missing}": "is needed for a login"}


def test_several_problems_are_listed() -> None:
    values = {"from": 7, "api_base": "x", "y": 1}
    assert _find_problems(_validate, "sendgrid", values).keys() == {
        "config.y",
        "config.api_key",
        "config.from",
        "config.api_base",
    }
    values = {"url": "https://127.0.0.1/", "headers": {"Host": "x"}}
    assert _find_problems(_validate, "webhook", values).keys() == {
        "config.url",
        "config.headers.Host",
    }


# Masks


def test_a_mask_hides_each_secret_and_sending_it_back_keeps_it(subtests: pytest.Subtests) -> None:
    for name, provider in PROVIDERS.items():
        with subtests.test(provider=name):
            stored = _FULL[name]
            masked = configs.mask(provider, stored)
            assert "planted" not in str(masked)
            assert masked.keys() == stored.keys()
            hidden = [key for key, value in masked.items() if value == MASK]
            assert hidden == _SECRETS[name]
            assert configs.unmask(provider, masked, stored) == stored
            assert "planted" in str(stored) or not hidden


def test_a_mask_of_a_header_keeps_the_stored_header() -> None:
    provider, stored = PROVIDERS["webhook"], _FULL["webhook"]
    assert configs.mask(provider, stored)["headers"] == {"X-Team": "blue", "Authorization": MASK}
    sent = {"url": "https://shop.example.com/new", "headers": {"authorization": MASK}}
    unmasked = configs.unmask(provider, sent, stored)
    assert unmasked == sent | {"headers": {"authorization": "planted-5"}}


def test_a_mask_without_a_stored_value_is_refused(subtests: pytest.Subtests) -> None:
    for name, keys in _SECRETS.items():
        for key in keys:
            with subtests.test(provider=name, key=key):
                sent = _FULL[name] | {key: MASK}
                problems = _find_problems(configs.unmask, PROVIDERS[name], sent, {})
                assert problems == {f"config.{key}": "has no stored value to keep"}
    sent = {"headers": {"X-Api-Key": MASK}}
    provider, stored = PROVIDERS["webhook"], _FULL["webhook"]
    problems = _find_problems(configs.unmask, provider, sent, stored)
    assert problems == {"config.headers.X-Api-Key": "has no stored value to keep"}


def test_the_removal_of_masks_leaves_invalid_values_to_the_validation() -> None:
    for headers in (None, 7, "x", ["x"], {"Authorization": 7}):
        sent: dict[str, Any] = {"url": 7, "headers": headers, "secret": ["x"]}
        assert configs.unmask(PROVIDERS["webhook"], sent, {}) == sent


# Moves


_MOVES: list[tuple[str, dict[str, Any], str]] = [
    ("smtp", {"host": "other.example.com"}, "password"),
    ("smtp", {"port": 587}, "password"),
    ("smtp", {"use_tls": False}, "password"),
    ("sendgrid", {"api_base": "https://other.example.com"}, "api_key"),
    ("mailgun", {"api_base": "https://api.eu.mailgun.net"}, "api_key"),
    ("resend", {"api_base": "https://api.resend.com:8443"}, "api_key"),
    ("slack_bot", {"api_base": "https://other.example.com/api"}, "token"),
    ("webhook", {"url": "https://other.example.com/hook", "headers": {}}, "secret"),
    ("twilio", {"api_base": "https://other.example.com"}, "auth_token"),
    ("vonage", {"api_base": "https://other.example.com"}, "api_secret"),
]


def _move(name: str, changes: dict[str, Any]) -> None:
    provider, stored = PROVIDERS[name], _FULL[name]
    sent = configs.mask(provider, stored) | changes
    new = _validate(name, configs.unmask(provider, sent, stored))
    configs.check_move(provider, sent, new, _validate(name, stored))


def test_a_move_to_another_host_needs_the_secret_again(subtests: pytest.Subtests) -> None:
    needed_again = "must be entered again, because this leads to another host"
    for name, changes, secret in _MOVES:
        with subtests.test(name, changes=changes):
            assert _find_problems(_move, name, changes) == {f"config.{secret}": needed_again}
            _move(name, changes | {secret: "new-secret"})


def test_a_move_to_another_host_needs_secret_headers_again() -> None:
    changes = {"url": "https://other.example.com/hook", "secret": "new-secret"}
    assert _find_problems(_move, "webhook", changes).keys() == {"config.headers.Authorization"}
    _move("webhook", changes | {"headers": {"X-Team": "red", "Authorization": "new"}})


def test_a_change_at_the_same_host_keeps_the_secrets(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, dict[str, Any]]] = [
        ("smtp", {"host": "MAIL.example.com", "from": "carol@example.com"}),
        ("sendgrid", {"api_base": "https://API.sendgrid.com:443/"}),
        ("slack_webhook", {"to": ["x"]}),
        ("slack_webhook", {"webhook_url": "https://other.example.com/services/new"}),
        ("slack_bot", {"channel": "#dev", "api_base": "https://slack.com/api/"}),
        ("webhook", {"url": "https://shop.example.com:443/other", "method": "POST"}),
        ("in_app", {"to": ["usr_2"]}),
    ]
    for name, changes in cases:
        with subtests.test(provider=name, changes=changes):
            _move(name, changes)


# Secrets


def test_the_secret_texts_of_each_provider(subtests: pytest.Subtests) -> None:
    expected = {
        "smtp": ["planted password"],
        "slack_webhook": ["/services/T00000000/B00000000/plantedXXXXXXXXXXXXX"],
        "webhook": ["planted-6", "planted-5"],
        "in_app": [],
    }
    for name, provider in PROVIDERS.items():
        with subtests.test(provider=name):
            texts = configs.secret_texts(provider, _validate(name, _FULL[name]))
            own = [_FULL[name][key] for key in _SECRETS[name]]
            assert texts == expected.get(name, own)
    config = _validate("webhook", {"url": "https://shop.example.com/"})
    assert configs.secret_texts(PROVIDERS["webhook"], config) == []


def test_a_failure_is_cut_after_its_secrets_are_removed() -> None:
    provider, secret = PROVIDERS["sendgrid"], "planted-0123456789"
    config = _validate("sendgrid", {"api_key": secret, "from": "ann@example.com"})
    for length in range(480, 500):
        text = configs.describe_failure(provider, config, SendFailed("x" * length + secret))
        assert len(text) <= 500
        assert "planted" not in text
