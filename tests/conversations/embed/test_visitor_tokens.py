"""Visitor tokens: what is signed, and what is refused as forged."""

from typing import Any

import jwt
import msgspec
import pytest

from app.crypto.keyring import Keyring
from app.domain.conversations.chat.schemas import Visitor
from app.domain.conversations.embed import visitor_tokens
from app.domain.conversations.embed.visitor_tokens import VisitorClaims
from app.kit.errors import Unauthorized
from tests.conversations.embed.sites import ORIGIN, Site, error_of
from tests.conversations.embed.visits import (
    TOKEN_ROUTES,
    call,
    claims_in,
    encode_part,
    encode_raw,
    sign_claims,
    sign_hs512,
    visit,
)

CLAIMS = VisitorClaims(key_id="emk_1", agent_id="agt_1", origin=ORIGIN, session_id="vis_1", since=1)
OLD, NEW = {"old": b"o" * 32}, {"new": b"n" * 32}


def _replace_part(token: str, index: int, part: str) -> str:
    parts = token.split(".")
    parts[index] = part
    return ".".join(parts)


def test_the_claims_come_back() -> None:
    keyring = Keyring(OLD)
    claims = visitor_tokens.verify(keyring, visitor_tokens.issue(keyring, CLAIMS))
    assert msgspec.structs.replace(claims, exp=0) == CLAIMS


def test_the_longest_claims_of_a_customer_fit_in_a_token() -> None:
    keyring = Keyring(OLD)
    visitor = Visitor("\N{GRINNING FACE}" * 200, "\N{GRINNING FACE}" * 200, '"' * 320)
    groups = tuple(f"{number:02}" + "\N{GRINNING FACE}" * 48 for number in range(20))
    claims = msgspec.structs.replace(CLAIMS, visitor=visitor, groups=groups, identity="f" * 16)
    token = visitor_tokens.issue(keyring, claims)
    assert visitor_tokens.verify(keyring, token).visitor == visitor


def test_a_token_survives_a_rotation_while_its_root_key_is_in_the_ring() -> None:
    token = visitor_tokens.issue(Keyring(OLD), CLAIMS)
    rotated = Keyring({**NEW, **OLD})
    assert visitor_tokens.verify(rotated, token).session_id == CLAIMS.session_id
    with pytest.raises(Unauthorized):
        visitor_tokens.verify(Keyring(NEW), token)
    # The new key signs from now on.
    assert visitor_tokens.verify(Keyring(NEW), visitor_tokens.issue(rotated, CLAIMS))


def _wrong_headers(token: str) -> dict[str, str]:
    encoded = token.removeprefix("vst_")
    header: dict[str, Any] = jwt.get_unverified_header(encoded)
    changes: dict[str, dict[str, Any]] = {
        "alg none": {"alg": "none"},
        "alg None": {"alg": "None"},
        "alg HS512": {"alg": "HS512"},
        "alg RS256": {"alg": "RS256"},
        "unknown kid": {"kid": "nobody"},
        "kid of another type": {"kid": ["x"]},
        "kid as a path": {"kid": "../../dev/null"},
        "critical extension": {"crit": ["exp"]},
        "detached payload": {"b64": False},
    }
    forged = {
        name: "vst_" + _replace_part(encoded, 0, encode_part({**header, **change}))
        for name, change in changes.items()
    }
    unsigned = _replace_part(forged["alg none"], 2, "")
    return {**forged, "alg none without a signature": unsigned}


def _wrong_signatures(site: Site, token: str) -> dict[str, str]:
    claims, encoded = claims_in(token), token.removeprefix("vst_")
    keyring = site.talk.world.services.keyring
    key = visitor_tokens._key(keyring, keyring.active)
    other_session = encode_part({**claims, "session_id": "vis_" + "b" * 32})
    return {
        "altered payload": "vst_" + _replace_part(encoded, 1, other_session),
        "no signature": _replace_part(token, 2, ""),
        "cut signature": token[:-2],
        "longer signature": token + "AAAA",
        "other secret": sign_claims(site, claims, b"s" * 32),
        "HS512 of the right key": "vst_" + sign_hs512(claims, key, kid=keyring.active),
        "prefix only": "vst_",
        "three dots": "vst_...",
        "garbage": "vst_%00{}.[]",
        "deep header": f"vst_{encode_raw(b'[' * 5000)}.e30.x",
        "oversize": token + "a" * 20_000,
        "prefix twice": f"vst_{token}",
    }


def _wrong_claims(site: Site, token: str) -> dict[str, str]:
    """Signed by this instance, as no token of it is."""
    claims = claims_in(token)
    without_expiry = {name: value for name, value in claims.items() if name != "exp"}
    return {
        "no claims": sign_claims(site, {}),
        "no expiry": sign_claims(site, without_expiry),
        "expiry as text": sign_claims(site, {**claims, "exp": str(claims["exp"])}),
        "endless": sign_claims(site, {**claims, "exp": float("inf")}),
        "session of another type": sign_claims(site, {**claims, "session_id": 7}),
        "key that does not exist": sign_claims(site, {**claims, "key_id": "emk_none"}),
    }


async def test_forged_tokens_are_refused(site: Site, subtests: pytest.Subtests) -> None:
    visitor = await visit(site)
    # Claims that this instance signed are taken, so that the others are refused for what they are.
    signed = sign_claims(site, claims_in(visitor.token))
    assert (await call(site, "GET session", signed)).status_code == 200
    forged = {
        **_wrong_headers(visitor.token),
        **_wrong_signatures(site, visitor.token),
        **_wrong_claims(site, visitor.token),
    }
    assert visitor.token not in forged.values()
    for name, token in forged.items():
        with subtests.test(name=name):
            answer = await call(site, "GET session", token, session_id=visitor.session_id)
            assert error_of(answer) == (401, "unauthorized")
            assert answer.headers["access-control-allow-origin"] == ORIGIN


async def test_bytes_that_are_no_text_are_refused(site: Site) -> None:
    caller = site.talk.world.anonymous()
    for token in (b"vst_\xfe\xff", b"vst_\xfe.\xff.\xfe", b"vst_\x7f"):
        headers = [(b"authorization", b"Bearer " + token)]
        answer = await caller.http.get(f"{site.path}/session", headers=headers)
        assert error_of(answer) == (401, "unauthorized")


async def test_a_forged_token_is_refused_by_every_route(
    site: Site, subtests: pytest.Subtests
) -> None:
    visitor = await visit(site)
    token = sign_claims(site, claims_in(visitor.token), b"s" * 32)
    for route in TOKEN_ROUTES:
        with subtests.test(route=route):
            answer = await call(site, route, token, session_id=visitor.session_id)
            assert error_of(answer) == (401, "unauthorized")
    assert site.talk.asked == []


async def test_tokens_of_users_are_no_visitor_tokens(site: Site) -> None:
    user = site.talk.client
    for token in (user.token, user.refresh_token):
        for credential in (f"vst_{token}", token or ""):
            answer = await call(site, "POST chat", credential)
            assert error_of(answer) == (401, "unauthorized")
    assert site.talk.asked == []
