"""Settings: defaults, parsing, error messages and their transfer to child processes."""

import base64
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.settings import Settings, SettingsError, as_env, load

# Defaults


def test_the_defaults_of_settings() -> None:
    expected = [
        ("host", "127.0.0.1"),
        ("port", 8000),
        ("public_url", "http://127.0.0.1:8000"),
        ("database_url", ""),
        ("redis_url", ""),
        ("smtp_url", ""),
        ("files_uri", ""),
        ("lancedb_uri", ""),
        ("master_keys", ""),
        ("admin_password", ""),
        ("default_plan", "free"),
        ("allow_signup", "auto"),
        ("egress_allow", ()),
        ("searxng_url", ""),
        ("webhook_retry_delays", (0, 60, 300, 1800, 7200, 28800, 86400)),
        ("anonymous_per_minute", 300),
        ("form_submissions_per_minute", 20),
        ("form_upload_mb_per_day", 200),
        ("trusted_proxies", ()),
        ("log_level", "info"),
        ("log_format", "console"),
        ("local_model", True),
        ("embedded_postgres", True),
        ("embedded_redis", True),
    ]
    loaded = load({})
    assert [(name, getattr(loaded, name)) for name, _ in expected] == expected


def test_the_data_directory_is_beside_the_caller_unless_set() -> None:
    assert load({}).data_dir == Path.cwd() / "data"


def test_an_empty_variable_counts_as_unset() -> None:
    assert load({"PARLEY_PORT": "", "PARLEY_LOG_LEVEL": "  "}) == load({})


def test_variables_without_the_prefix_are_ignored() -> None:
    assert load({"PORT": "9000", "DATABASE_URL": "postgresql://elsewhere/x"}) == load({})


def test_a_default_of_the_caller_applies_to_an_unset_variable() -> None:
    assert load({}, default_plan="enterprise").default_plan == "enterprise"


def test_a_variable_overrides_a_default_of_the_caller() -> None:
    assert load({"PARLEY_DEFAULT_PLAN": "pro"}, default_plan="enterprise").default_plan == "pro"


def test_the_environment_of_the_process_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLEY_PORT", "9123")
    assert load().port == 9123


def test_settings_do_not_change() -> None:
    with pytest.raises(AttributeError):
        load({}).port = 1  # type: ignore[misc]


# Values


def test_values_are_read() -> None:
    expected = [
        ("data_dir", "/srv/parley", Path("/srv/parley")),
        ("data_dir", "somewhere", Path.cwd() / "somewhere"),
        ("data_dir", "~/parley", Path.home() / "parley"),
        ("port", "9000", 9000),
        ("port", " 9000 ", 9000),
        ("base_url", "https://parley.test/base", "https://parley.test/base"),
        ("database_url", "postgres://u:p@db/x", "postgres://u:p@db/x"),
        ("redis_url", "rediss://:p@cache:6380/1", "rediss://:p@cache:6380/1"),
        ("smtp_url", "smtps://u:p@mail:465", "smtps://u:p@mail:465"),
        ("default_plan", "Enterprise", "enterprise"),
        ("allow_signup", "no", False),
        ("allow_signup", "TRUE", True),
        ("allow_signup", "0", False),
        ("allow_signup", "Auto", "auto"),
        ("local_model", "off", False),
        ("local_model", "on", True),
        (
            "egress_allow",
            "localhost, 10.0.0.0/8,*.internal,",
            ("localhost", "10.0.0.0/8", "*.internal"),
        ),
        ("searxng_url", "http://search:8080/searxng/", "http://search:8080/searxng"),
        ("webhook_retry_delays", "0, 5,10", (0, 5, 10)),
        ("trusted_proxies", "10.0.0.1,fd00::/8", ("10.0.0.1", "fd00::/8")),
        ("log_level", "DEBUG", "debug"),
        ("log_format", "json", "json"),
        ("lease_seconds", "0.5", 0.5),
        ("max_body_mb", "1024", 1024),
        ("max_file_mb", "5000", 5000),
        ("metrics_address", "OFF", "off"),
        ("metrics_address", "[::]:9000", "[::]:9000"),
    ]
    assert [
        (name, text, getattr(load({f"PARLEY_{name.upper()}": text}), name))
        for name, text, _ in expected
    ] == expected


INVALID_VALUES = [
    ("PORT", "http"),
    ("PORT", "80.5"),
    ("PORT", "0"),
    ("PORT", "65536"),
    ("PORT", "-1"),
    ("PORT", "9" * 5_000),
    ("PORT", "80\n81"),
    ("BASE_URL", "parley.test"),
    ("BASE_URL", "ftp://parley.test"),
    ("BASE_URL", "http://["),
    ("DATABASE_URL", "mysql://db/parley"),
    ("DATABASE_URL", "db.test/parley"),
    ("REDIS_URL", "http://cache:6379"),
    ("SMTP_URL", "mail.test:25"),
    ("SMTP_URL", "https://mail.test"),
    ("SEARXNG_URL", "search:8080"),
    ("SEARXNG_URL", "http://search/?q=x"),
    ("SEARXNG_URL", "http://search/#top"),
    ("SEARXNG_URL", "http://user@search"),
    ("DEFAULT_PLAN", "gold"),
    ("ALLOW_SIGNUP", "maybe"),
    ("LOCAL_MODEL", "2"),
    *(("WEBHOOK_RETRY_DELAYS", value) for value in ("0,soon", "0,-5", ",", "1.5")),
    ("ANONYMOUS_PER_MINUTE", "0"),
    ("ANONYMOUS_PER_MINUTE", "many"),
    ("FORM_SUBMISSIONS_PER_MINUTE", "-1"),
    ("FORM_UPLOAD_MB_PER_DAY", "0"),
    ("TRUSTED_PROXIES", "proxy.test"),
    ("TRUSTED_PROXIES", "10.0.0.1,10.0.0.0/99"),
    ("LOG_LEVEL", "loud"),
    ("LOG_LEVEL", "info\ndebug"),
    ("LOG_FORMAT", "xml"),
    *((f"MAX_{kind}_MB", value) for kind in ("BODY", "FILE") for value in ("0", "10241")),
    ("LOCAL_MODEL_PORT", "-1"),
    ("LEASE_SECONDS", "0"),
    ("LEASE_SECONDS", "3601"),
    ("LEASE_SECONDS", "nan"),
    ("LEASE_SECONDS", "soon"),
    ("POOL_SIZE", "0"),
    ("CONNECTIONS_PER_ADDRESS", "0"),
    *(("METRICS_ADDRESS", value) for value in ("9464", ":9464", "::1:9464", "127.0.0.1:0", "a:b")),
]


def _refuse(name: str, value: str) -> str:
    """Returns the message with which a value is refused."""
    try:
        load({f"PARLEY_{name}": value})
    except SettingsError as error:
        return str(error)
    pytest.fail(f"PARLEY_{name}={value[:50]} is not refused")


def test_a_wrong_value_is_refused_in_one_line_by_the_name_of_its_variable() -> None:
    for name, value in INVALID_VALUES:
        message = _refuse(name, value)
        assert re.match(f"PARLEY_{name}\\b", message), (value[:50], message)
        assert len(message.splitlines()) == 1, message


def test_an_address_that_cannot_work_is_refused_at_the_start(subtests: pytest.Subtests) -> None:
    for reason, name, value in (
        ("a base without a host", "BASE_URL", "https://"),
        ("a base whose port is no number", "BASE_URL", "https://parley.test:port"),
        ("a mail port that is no number", "SMTP_URL", "smtp://mail.test:port"),
        ("an administrator without an address", "ADMIN_EMAIL", "admin"),
        ("a port that does not exist", "REDIS_URL", "redis://cache:99999"),
        ("a database port in words", "DATABASE_URL", "postgresql://db:port/x"),
        ("a network that is none", "EGRESS_ALLOW", "10.0.0.0/99"),
        ("a URL for a host", "EGRESS_ALLOW", "http://models.internal"),
    ):
        with subtests.test(reason):
            assert re.match(f"PARLEY_{name}\\b", _refuse(name, value))


def test_a_refusal_does_not_show_the_password_in_a_url() -> None:
    for name, value in (
        ("DATABASE_URL", "mysql://parley:hunter2@db/parley"),
        ("DATABASE_URL", "parley:hunter2@db/parley"),
        ("REDIS_URL", "http://:hunter2@cache:6379"),
        ("SMTP_URL", "https://parley:hunter2@mail.test"),
        ("SMTP_URL", "mail.test:25?password=hunter2"),
        ("BASE_URL", "ftp://parley:hunter2@parley.test"),
        ("SEARXNG_URL", "http://parley:hunter2@search.test"),
    ):
        assert "hunter2" not in _refuse(name, value), value


def test_a_refusal_does_not_show_the_other_variables() -> None:
    env = {
        "PARLEY_PORT": "wrong",
        "PARLEY_ADMIN_PASSWORD": "hunter2",
        "PARLEY_MASTER_KEYS": "k1:hunter2",
        "PARLEY_DATABASE_URL": "postgresql://parley:hunter2@db/parley",
    }
    with pytest.raises(SettingsError) as raised:
        load(env)
    assert "hunter2" not in str(raised.value)


def test_a_refusal_shows_a_value_that_is_no_secret() -> None:
    with pytest.raises(SettingsError, match=r"'gold'.*free, pro, team, enterprise"):
        load({"PARLEY_DEFAULT_PLAN": "gold"})


# Derived values


@pytest.mark.parametrize(
    ("env", "url"),
    [
        ({"PARLEY_PORT": "9000"}, "http://127.0.0.1:9000"),
        ({"PARLEY_HOST": "::1"}, "http://[::1]:8000"),
        ({"PARLEY_BASE_URL": "https://parley.test/"}, "https://parley.test"),
        ({"PARLEY_BASE_URL": "https://parley.test/a", "PARLEY_PORT": "1"}, "https://parley.test/a"),
    ],
)
def test_the_public_url_is_the_base_or_the_address(env: dict[str, str], url: str) -> None:
    assert load(env).public_url == url


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg"])
def test_an_external_database_is_reached_by_asyncpg(scheme: str) -> None:
    loaded = load({"PARLEY_DATABASE_URL": f"{scheme}://parley:p%40ss@db:5433/x"})
    assert loaded.sqlalchemy_url == "postgresql+asyncpg://parley:p%40ss@db:5433/x"
    assert not loaded.embedded_postgres


def test_an_external_redis_is_reached_by_its_url() -> None:
    loaded = load({"PARLEY_REDIS_URL": "redis://cache:6379/1"})
    assert loaded.redis_address == "redis://cache:6379/1"
    assert not loaded.embedded_redis


def test_embedded_parts_are_reached_by_sockets_in_the_run_directory() -> None:
    loaded = load({"PARLEY_DATA_DIR": "/srv/parley"})
    assert loaded.redis_address == "unix:///srv/parley/run/redis.sock"
    assert loaded.sqlalchemy_url == "postgresql+asyncpg://parley@/parley?host=/srv/parley/run"


@pytest.mark.parametrize(
    ("address", "listener"),
    [
        ("127.0.0.1:9464", ("127.0.0.1", 9464)),
        ("[::1]:8000", ("::1", 8000)),
        ("127.0.0.1:8000", None),
        ("off", None),
    ],
)
def test_metrics_have_a_listener_unless_their_address_is_that_of_the_web_tier(
    address: str, listener: tuple[str, int] | None
) -> None:
    loaded = load({"PARLEY_METRICS_ADDRESS": address})
    assert loaded.metrics_listener == listener
    assert loaded.has_metrics_on_web_port == (address == "127.0.0.1:8000")


# Settings of a child process


def test_sign_up_is_open_on_loopback_unless_set_otherwise(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, str], bool]] = [
        ({}, True),
        ({"HOST": "::1"}, True),
        ({"HOST": "localhost"}, True),
        ({"HOST": "0.0.0.0"}, False),
        ({"HOST": "::"}, False),
        ({"HOST": "10.0.0.5"}, False),
        ({"BASE_URL": "http://localhost:8000"}, True),
        ({"BASE_URL": "http://[::1]:8000"}, True),
        ({"BASE_URL": "https://parley.test"}, False),
        ({"BASE_URL": "https://localhost.parley.test"}, False),
        ({"BASE_URL": "https://127.0.0.1.nip.io"}, False),
        # Reachable from elsewhere, whatever its links say.
        ({"HOST": "0.0.0.0", "BASE_URL": "http://localhost:8000"}, False),
        ({"HOST": "0.0.0.0", "ALLOW_SIGNUP": "true"}, True),
        ({"BASE_URL": "https://parley.test", "ALLOW_SIGNUP": "true"}, True),
        ({"ALLOW_SIGNUP": "false"}, False),
        ({"ALLOW_SIGNUP": "auto"}, True),
    ]
    for env, is_open in cases:
        with subtests.test(**env):
            found = load({f"PARLEY_{name}": value for name, value in env.items()})
            assert found.is_signup_open is is_open


FULL = Settings(
    data_dir=Path("/srv/parley data"),
    host="0.0.0.0",
    port=9000,
    base_url="https://parley.test",
    database_url="postgresql://parley:p%40ss,word@db/parley?ssl=require",
    redis_url="redis://:p@cache:6379/1",
    lancedb_uri="s3://bucket/vectors",
    files_uri="s3://bucket/files",
    smtp_url="smtp://u:p@mail:587?starttls=true",
    mail_from="Parley <hello@parley.test>",
    master_keys="k2:" + base64.b64encode(b"b" * 32).decode() + ",k1:" + "a" * 43 + "=",
    admin_email="root@parley.test",
    admin_password="p,a=s s'\"\u00e9",
    default_plan="team",
    allow_signup=False,
    demo=True,
    egress_allow=("localhost", "10.0.0.0/8", "*.internal"),
    searxng_url="http://search:8080",
    webhook_retry_delays=(0, 1),
    anonymous_per_minute=1,
    form_submissions_per_minute=2,
    form_upload_mb_per_day=2,
    trusted_proxies=("10.0.0.1", "fd00::/8"),
    connections_per_address=7,
    log_level="debug",
    log_format="json",
    max_body_mb=3,
    body_memory_mb=64,
    max_file_mb=6,
    local_model=False,
    local_model_port=4,
    transcription_model="openai/whisper-1",
    speech_model="openai/tts-1",
    lease_seconds=0.25,
    pool_size=5,
    metrics_address="[::1]:9000",
    metrics_dir="/tmp/metrics",
    sandbox_dir=Path("/tmp/sandbox"),
    sandbox_min_free_mb=7,
    embedding_model="openai/text-embedding-3-small",
    sentence_encoders=False,
)


def test_a_child_loads_the_defaults_that_its_parent_loaded() -> None:
    assert load(as_env(load({}))) == load({})


def test_a_child_loads_every_setting_of_its_parent() -> None:
    assert load(as_env(FULL)) == FULL


def test_the_full_example_leaves_no_setting_at_its_default() -> None:
    defaults = msgspec.structs.asdict(Settings())
    same = [name for name, value in msgspec.structs.asdict(FULL).items() if defaults[name] == value]
    assert same == ["set_names"]


def test_every_setting_can_be_handed_on() -> None:
    names = set(Settings.__struct_fields__) - {"set_names"} | {"passed_on"}
    assert set(as_env(FULL)) == {f"PARLEY_{name.upper()}" for name in names}


def test_only_texts_are_handed_on() -> None:
    assert all(isinstance(value, str) for value in as_env(FULL).values())


@given(
    changes=st.fixed_dictionaries(
        {},
        optional={
            "port": st.integers(1, 65535),
            "allow_signup": st.booleans() | st.just("auto"),
            "demo": st.booleans(),
            "local_model": st.booleans(),
            "default_plan": st.sampled_from(["free", "pro", "team", "enterprise"]),
            "webhook_retry_delays": st.lists(st.integers(0, 10**6), min_size=1).map(tuple),
            "lease_seconds": st.floats(0, 3600, exclude_min=True),
            "log_level": st.sampled_from(["debug", "info", "warning", "error"]),
            "max_body_mb": st.integers(1, 1024),
        },
    )
)
@settings(max_examples=50, deadline=None)
def test_a_child_loads_any_settings_of_its_parent(changes: dict[str, Any]) -> None:
    parent = msgspec.structs.replace(load({}), **changes)
    assert load(as_env(parent)) == parent
