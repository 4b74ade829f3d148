"""Access tokens: signatures, claims, expiry, and the state of their session."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest

from app.crypto.keyring import Keyring
from app.kit import clock
from app.kit.ids import new_id
from app.security import tokens
from app.security.errors import TokenInvalid
from app.security.tokens import Tokens
from app.services import Services
from db.models import Session, User
from db.session import ALL_TENANTS
from tests.world import Client, World

CLAIMS = {"sub": "usr_a", "tid": "ten_a", "role": "viewer", "sid": "ses_a"}


def _encode_part(value: object) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _sign_jwt(header: object, payload: object, key: bytes, digest: str = "sha256") -> str:
    """Builds a JWT without a library, so that every part can be invalid."""
    text = f"{_encode_part(header)}.{_encode_part(payload)}"
    return f"{text}.{_encode_part(hmac.digest(key, text.encode(), digest))}"


class Forger:
    """Signs tokens with the real key and the claims of a signed-in user's token."""

    def __init__(self, services: Services, client: Client) -> None:
        self.kid = services.keyring.active
        self.key = services.keyring.derive(self.kid, "jwt", "")
        self.token = client.token or ""
        self.payload: dict[str, Any] = json.loads(
            base64.urlsafe_b64decode(self.token.split(".")[1] + "==")
        )

    def header(self, **changes: object) -> dict[str, object]:
        return {"alg": "HS256", "typ": "JWT", "kid": self.kid, **changes}

    def sign(self, **changes: object) -> str:
        return _sign_jwt(self.header(), {**self.payload, **changes}, self.key)


@pytest.fixture
async def forger(services: Services, developer: Client) -> Forger:
    return Forger(services, developer)


async def _get_me(anonymous: Client, token: str, scheme: str = "Bearer ") -> httpx.Response:
    return await anonymous.get("/auth/me", headers={"authorization": scheme + token})


async def test_a_correctly_signed_token_is_accepted(anonymous: Client, forger: Forger) -> None:
    """Proves that the tokens below are refused for their defect, not for how they are built."""
    assert (await _get_me(anonymous, forger.sign())).status_code == 200


def _tamper_with_role(forger: Forger) -> str:
    header, _, signature = forger.token.split(".")
    return f"{header}.{_encode_part({**forger.payload, 'role': 'super_admin'})}.{signature}"


def _nest_header(levels: int) -> str:
    return f"{_encode_part(b'[' * levels)}.e30.c2ln"


FORGERIES: dict[str, Callable[[Forger], str]] = {
    "alg none, unsigned": lambda f: ".".join(
        [_encode_part(f.header(alg="none")), _encode_part({**f.payload, "role": "super_admin"}), ""]
    ),
    "alg none, real signature": lambda f: (
        f"{_encode_part(f.header(alg='none'))}.{'.'.join(f.token.split('.')[1:])}"
    ),
    "alg NONE": lambda f: _sign_jwt(f.header(alg="NONE"), f.payload, f.key),
    "another algorithm": lambda f: _sign_jwt(f.header(alg="HS512"), f.payload, f.key, "sha512"),
    "no algorithm": lambda f: _sign_jwt({"kid": f.kid}, f.payload, f.key),
    "another key": lambda f: _sign_jwt(f.header(), f.payload, b"x" * 32),
    "an empty key": lambda f: _sign_jwt(f.header(), f.payload, b""),
    "a key for another purpose": lambda f: _sign_jwt(
        f.header(), f.payload, hashlib.sha256(f.key).digest()
    ),
    "unknown kid": lambda f: _sign_jwt(f.header(kid="other"), f.payload, f.key),
    "no kid": lambda f: _sign_jwt({"alg": "HS256"}, f.payload, f.key),
    "kid of a wrong type": lambda f: _sign_jwt(f.header(kid=["test"]), f.payload, f.key),
    "kid that is a path": lambda f: _sign_jwt(f.header(kid="../../dev/null"), f.payload, b""),
    "tampered payload": _tamper_with_role,
    "no signature": lambda f: ".".join(f.token.split(".")[:2]) + ".",
    "cut short": lambda f: f.token[:-4],
    "one more part": lambda f: f.token + ".e30",
    "payload that is no object": lambda f: _sign_jwt(f.header(), ["usr"], f.key),
    "payload that is no JSON": lambda f: _sign_jwt(f.header(), b"{", f.key),
    "garbage": lambda _: "garbage",
    "dots": lambda _: "...",
    "not ASCII": lambda _: "t\xf6ken",
    "an embed key": lambda _: "emb_0123456789",
    "over-long": lambda _: "x" * 5000,
    "over-long, of the right form": lambda f: f.sign(more="x" * 5000),
    "deeply nested header": lambda _: _nest_header(3000),
}


async def test_a_forged_token_is_refused(
    anonymous: Client, forger: Forger, subtests: pytest.Subtests
) -> None:
    for name, forge in FORGERIES.items():
        with subtests.test(name=name):
            authorization = f"Bearer {forge(forger)}".encode("latin-1")
            answer = await anonymous.get("/auth/me", headers={"authorization": authorization})
            assert answer.status_code == 401
            assert answer.json()["error"]["code"] == "unauthorized"


async def test_a_token_without_one_of_its_claims_is_refused(
    anonymous: Client, forger: Forger, subtests: pytest.Subtests
) -> None:
    for claim in ("sub", "tid", "role", "sid", "jti", "typ", "exp"):
        with subtests.test(claim=claim):
            payload = {key: value for key, value in forger.payload.items() if key != claim}
            token = _sign_jwt(forger.header(), payload, forger.key)
            assert (await _get_me(anonymous, token)).status_code == 401


_WRONG_CLAIMS: list[tuple[str, object]] = [
    ("exp", "9999999999"),
    ("exp", 1e300),
    ("exp", None),
    ("exp", True),
    ("sub", 7),
    ("tid", None),
    ("sid", ["ses"]),
    ("role", {}),
    ("typ", "ACCESS"),
    ("typ", "refresh"),
    ("typ", "mfa"),
]


async def test_a_token_with_a_wrong_value_in_a_claim_is_refused(
    anonymous: Client, forger: Forger, subtests: pytest.Subtests
) -> None:
    for claim, value in _WRONG_CLAIMS:
        with subtests.test(claim=claim, value=value):
            assert (await _get_me(anonymous, forger.sign(**{claim: value}))).status_code == 401


async def test_a_token_for_a_session_that_does_not_exist_is_refused(
    anonymous: Client, forger: Forger, subtests: pytest.Subtests
) -> None:
    for claim in ("tid", "sid"):
        with subtests.test(claim=claim):
            assert (
                await _get_me(anonymous, forger.sign(**{claim: new_id("x")}))
            ).status_code == 401


async def test_a_refresh_token_is_no_access_token(anonymous: Client, services: Services) -> None:
    token = services.tokens.issue("refresh", 60, jti="jti_a", **CLAIMS)
    assert (await _get_me(anonymous, token)).status_code == 401


async def test_a_right_token_under_a_wrong_scheme_is_refused(
    anonymous: Client, forger: Forger, subtests: pytest.Subtests
) -> None:
    for scheme in ("", "Basic ", "Token ", "JWT ", "Bearer", "Bearer\t"):
        with subtests.test(scheme=scheme):
            assert (await _get_me(anonymous, forger.token, scheme)).status_code == 401


async def test_the_name_of_the_scheme_may_be_written_in_any_case(
    anonymous: Client, forger: Forger, subtests: pytest.Subtests
) -> None:
    for scheme in ("Bearer ", "bearer ", "BEARER ", "Bearer  "):
        with subtests.test(scheme=scheme):
            assert (await _get_me(anonymous, forger.token, scheme)).status_code == 200


async def test_a_refusal_has_the_error_envelope_and_requests_a_bearer_token(
    anonymous: Client, subtests: pytest.Subtests
) -> None:
    cases: list[str | None] = [None, "garbage"]
    for token in cases:
        with subtests.test(token=token):
            headers = {"authorization": f"Bearer {token}"} if token else {}
            answer = await anonymous.get("/auth/me", headers=headers)
            assert set(answer.json()) == {"error"}
            assert set(answer.json()["error"]) == {"code", "message"}
            assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_token_in_the_query_is_not_read(anonymous: Client, forger: Forger) -> None:
    answer = await anonymous.get("/auth/me", params={"access_token": forger.token})
    assert answer.status_code == 401


# Expiry


async def test_a_token_is_valid_for_nearly_fifteen_minutes(developer: Client) -> None:
    with clock.frozen(clock.now() + timedelta(minutes=14, seconds=55)):
        assert (await developer.get("/auth/me")).status_code == 200


async def test_a_token_expires_after_fifteen_minutes(developer: Client) -> None:
    with clock.frozen(clock.now() + timedelta(minutes=15)):
        answer = await developer.get("/auth/me")
    assert answer.status_code == 401
    assert "expired" in answer.json()["error"]["message"]


async def test_a_token_that_was_verified_before_expires_too(developer: Client) -> None:
    await developer.get("/auth/me")
    with clock.frozen(clock.now() + timedelta(minutes=15)):
        assert (await developer.get("/auth/me")).status_code == 401


# Sessions


async def _end_session_in_postgres(services: Services, session_id: str) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        row = await (await tx.session()).get_one(Session, session_id)
        row.ended_at = clock.now()


async def test_the_token_of_an_ended_session_is_refused_at_once(
    developer: Client, services: Services
) -> None:
    assert (await developer.get("/auth/me")).status_code == 200
    await _end_session_in_postgres(services, developer.session_id)
    await services.session_cache.end_sessions([developer.session_id])
    answer = await developer.get("/auth/me")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_an_ended_session_stays_ended_after_redis_lost_its_data(
    developer: Client, services: Services
) -> None:
    await _end_session_in_postgres(services, developer.session_id)
    await services.session_cache.end_sessions([developer.session_id])
    await services.redis.flushall()
    assert (await developer.get("/auth/me")).status_code == 401


async def test_an_active_session_stays_active_after_redis_lost_its_data(
    developer: Client, services: Services
) -> None:
    await services.redis.flushall()
    assert (await developer.get("/auth/me")).status_code == 200


async def test_a_session_ended_before_it_is_cached_stays_ended(
    developer: Client, services: Services
) -> None:
    """The session is marked as ended before its first cache entry is written."""
    await services.session_cache.end_sessions([developer.session_id])
    assert (await developer.get("/auth/me")).status_code == 401


async def test_ending_one_session_does_not_end_another_of_the_same_tenant(
    world: World, developer: Client, services: Services
) -> None:
    other = await world.user("viewer", developer.tenant_id)
    await _end_session_in_postgres(services, developer.session_id)
    await services.session_cache.end_sessions([developer.session_id])
    assert (await other.get("/auth/me")).status_code == 200


async def test_an_expired_session_is_refused(developer: Client, services: Services) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        row = await (await tx.session()).get_one(Session, developer.session_id)
        row.expires_at = clock.now() - timedelta(seconds=1)
    assert (await developer.get("/auth/me")).status_code == 401


async def test_a_deactivated_user_is_refused_after_redis_lost_its_data(
    developer: Client, services: Services
) -> None:
    assert (await developer.get("/auth/me")).status_code == 200
    async with services.db.tx(ALL_TENANTS) as tx:
        row = await (await tx.session()).get_one(User, developer.user_id)
        row.status = "inactive"
    await services.redis.flushall()
    assert (await developer.get("/auth/me")).status_code == 401


# Issued tokens


def _build_tokens() -> Tokens:
    return Tokens(Keyring({"k1": b"1" * 32}))


def test_a_verified_token_has_the_claims_it_was_issued_with() -> None:
    issuer = _build_tokens()
    claims = issuer.verify(issuer.issue("access", 60, jti="jti_a", **CLAIMS), "access")
    assert {name: getattr(claims, name) for name in CLAIMS} == CLAIMS
    assert (claims.jti, claims.typ) == ("jti_a", "access")


def test_a_token_expires_after_its_lifetime() -> None:
    now = clock.now()
    with clock.frozen(now):
        issuer = _build_tokens()
        claims = issuer.verify(issuer.issue("refresh", 3600, jti="j", **CLAIMS), "refresh")
    assert claims.exp == int(now.timestamp()) + 3600


def test_a_token_signed_with_a_retired_key_is_valid_while_the_keyring_has_it() -> None:
    token = _build_tokens().issue("access", 60, jti="j", **CLAIMS)
    rotated = Tokens(Keyring({"k2": b"2" * 32, "k1": b"1" * 32}))
    assert rotated.verify(token, "access").sub == "usr_a"


def test_a_token_signed_with_a_removed_key_is_refused() -> None:
    token = _build_tokens().issue("access", 60, jti="j", **CLAIMS)
    with pytest.raises(TokenInvalid):
        Tokens(Keyring({"k2": b"2" * 32})).verify(token, "access")


def test_a_token_signed_under_the_same_name_with_another_key_is_refused() -> None:
    token = Tokens(Keyring({"k1": b"2" * 32})).issue("access", 60, jti="j", **CLAIMS)
    with pytest.raises(TokenInvalid):
        _build_tokens().verify(token, "access")


def test_a_cached_token_is_refused_as_another_type() -> None:
    issuer = _build_tokens()
    token = issuer.issue("refresh", 60, jti="j", **CLAIMS)
    issuer.verify(token, "refresh")
    with pytest.raises(TokenInvalid, match="another type"):
        issuer.verify(token, "access")


def test_a_refusal_does_not_reveal_names_of_keys() -> None:
    token = Tokens(Keyring({"hidden": b"2" * 32})).issue("access", 60, jti="j", **CLAIMS)
    with pytest.raises(TokenInvalid) as error:
        _build_tokens().verify(token, "access")
    assert str(error.value) == "The token is not valid"


def test_new_secrets_are_long_and_differ() -> None:
    secrets = {tokens.new_secret() for _ in range(100)}
    assert len(secrets) == 100
    assert min(map(len, secrets)) >= 43
