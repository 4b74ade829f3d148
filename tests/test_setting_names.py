"""What is said about a wrong setting, and about variables that look like settings and are none."""

import pytest

from app.settings import SettingsError, load


def test_a_misspelt_variable_stops_the_start(subtests: pytest.Subtests) -> None:
    for variable, hint in (
        ("PARLEY_DATABSE_URL", "did you mean PARLEY_DATABASE_URL?"),
        ("PARLEY_LOG_LEVLE", "did you mean PARLEY_LOG_LEVEL?"),
        ("PARLEY_X", "docs/configuration.md lists the settings"),
    ):
        with subtests.test(variable), pytest.raises(SettingsError) as raised:
            load({variable: "secret"})
        assert str(raised.value) == f"{variable}: there is no such setting; {hint}"


def test_a_refusal_says_what_is_expected(subtests: pytest.Subtests) -> None:
    for name, value, expected in (
        ("LEASE_SECONDS", "soon", "must be a number of seconds"),
        ("LEASE_SECONDS", "3601", "must be more than 0 and at most 3600 seconds"),
        ("EGRESS_ALLOW", "http://models.internal", "is not a host name, address or network"),
        ("TRUSTED_PROXIES", "proxy.test", "is not an address or network"),
        ("BASE_URL", "https://", "must contain a host"),
    ):
        with subtests.test(name, value=value), pytest.raises(SettingsError, match=expected):
            load({f"PARLEY_{name}": value})


def test_variables_of_kubernetes_and_of_other_programs_are_ignored() -> None:
    names = ("PARLEY_SERVICE_HOST", "PARLEY_SERVICE_PORT_HTTP", "PARLEY_PORT_8000_TCP_ADDR", "PATH")
    assert load(dict.fromkeys(names, "10.0.0.1")) == load({})
