"""Variables that look like settings, and are none."""

import pytest

from app.settings import SettingsError, load


def test_a_misspelt_variable_stops_the_start(subtests: pytest.Subtests) -> None:
    for variable, hint in (
        ("PARLEY_DATABSE_URL", "did you mean PARLEY_DATABASE_URL?"),
        ("PARLEY_LOG_LEVLE", "did you mean PARLEY_LOG_LEVEL?"),
        ("PARLEY_X", "see the documentation"),
    ):
        with subtests.test(variable), pytest.raises(SettingsError) as raised:
            load({variable: "secret"})
        assert str(raised.value) == f"{variable}: there is no such setting; {hint}"


def test_variables_of_kubernetes_and_of_other_programs_are_ignored() -> None:
    names = ("PARLEY_SERVICE_HOST", "PARLEY_SERVICE_PORT_HTTP", "PARLEY_PORT_8000_TCP_ADDR", "PATH")
    assert load(dict.fromkeys(names, "10.0.0.1")) == load({})
