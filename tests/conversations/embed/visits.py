"""Visitors of web sites: their sessions, and requests with visitor tokens."""

import base64
import hmac
from typing import Any

import httpx
import jwt
import msgspec

from app.domain.conversations.embed import visitor_tokens
from app.kit import clock
from tests.conversations.embed.factories import KEYS_PATH, create_embed_key
from tests.conversations.embed.sites import ORIGIN, Site
from tests.scripted_agents import Talker

# Every route that takes a visitor token.
TOKEN_ROUTES = (
    "GET session",
    "GET conversations",
    "POST session",
    "POST chat",
    "POST chat/stream",
    "POST chat/audio",
    "POST chat/tts",
    "POST messages/{message_id}/feedback",
    "POST attachments",
)
# Those that the key itself cannot call.
TOKEN_ONLY_ROUTES = (
    "GET session",
    "GET conversations",
    "POST messages/{message_id}/feedback",
    "POST attachments",
)
# Those that name a session in their body.
SESSION_ROUTES = ("POST session", "POST chat", "POST chat/stream", "POST chat/audio")
NOTE = {"file": ("note.txt", b"The code is 4711.", "text/plain")}
KNOWN_SESSION = "vis_" + "a" * 32


async def create_shop(talk: Talker, *domains: str, **rules: Any) -> Site:
    """A site whose key has the rules; without domains it allows every origin."""
    key = await create_embed_key(talk.client, talk.agent_id, allowed_domains=list(domains), **rules)
    return Site(talk, key, KNOWN_SESSION)


async def change_key(site: Site, **fields: Any) -> dict[str, Any]:
    answer = await site.talk.client.put(f"{KEYS_PATH}/{site.key['id']}", fields)
    assert answer.status_code == 200, answer.text
    view: dict[str, Any] = answer.json()
    return view


async def call(
    site: Site,
    route: str,
    credential: str,
    *,
    origin: str | None = ORIGIN,
    session_id: str | None = KNOWN_SESSION,
    **headers: str,
) -> httpx.Response:
    """Sends a valid request to a route of `TOKEN_ROUTES`."""
    method, name = route.split()
    headers |= {"authorization": f"Bearer {credential}"}
    if origin is not None:
        headers["origin"] = origin
    http, path = site.talk.world.anonymous().http, f"{site.path}/{name}"
    if name == "chat/audio":
        files = {"audio": ("recording.wav", b"RIFF", "audio/wav")}
        data = {"session_id": session_id}
        return await http.post(path, files=files, data=data, headers=headers, timeout=60)
    if name == "attachments":
        return await http.post(path, files=NOTE, headers=headers, timeout=60)
    bodies: dict[str, Any] = {
        "POST session": {} if session_id is None else {"session_id": session_id},
        "POST chat/tts": {"text": "Hello"},
        "POST messages/{message_id}/feedback": {"rating": "up"},
    }
    body = bodies.get(route, {"session_id": session_id, "message": "Hi"})
    json = None if method == "GET" else body
    return await http.request(method, path, json=json, headers=headers, timeout=60)


async def open_session(
    site: Site, origin: str | None = ORIGIN, credential: str | None = None, **fields: Any
) -> httpx.Response:
    headers = {"authorization": f"Bearer {credential or site.api_key}"}
    if origin is not None:
        headers["origin"] = origin
    return await site.talk.world.anonymous().post(f"{site.path}/session", fields, headers=headers)


class Visit(msgspec.Struct):
    """A visitor of a site who has a token."""

    site: Site
    token: str
    session_id: str
    origin: str | None

    async def call(self, route: str = "POST chat", **changes: Any) -> httpx.Response:
        """Sends a request that is allowed, unless `changes` say otherwise."""
        fields = {"origin": self.origin, "session_id": self.session_id, **changes}
        return await call(self.site, route, self.token, **fields)

    async def ask(self, message: str, **more: Any) -> httpx.Response:
        body = {"session_id": self.session_id, "message": message, **more}
        headers = {"authorization": f"Bearer {self.token}", "origin": self.origin or ""}
        caller = self.site.talk.world.anonymous()
        return await caller.post(f"{self.site.path}/chat", body, headers=headers)

    async def say(self, message: str) -> dict[str, Any]:
        answer = await self.ask(message)
        assert answer.status_code == 200, answer.text
        reply: dict[str, Any] = answer.json()
        return reply

    async def load(self) -> dict[str, Any]:
        answer = await self.call("GET session")
        assert answer.status_code == 200, answer.text
        state: dict[str, Any] = answer.json()
        return state

    async def renew(self, **fields: Any) -> httpx.Response:
        return await open_session(self.site, self.origin, self.token, **fields)


async def visit(site: Site, origin: str | None = ORIGIN, **fields: Any) -> Visit:
    answer = await open_session(site, origin, **fields)
    assert answer.status_code == 200, answer.text
    session = answer.json()
    return Visit(site, session["token"], session["session_id"], origin)


def sign_user(site: Site, sub: Any = "customer-7", **claims: Any) -> str:
    """Signs a user token as a customer's server does."""
    payload = {"sub": sub, "exp": int(clock.epoch()) + 300, **claims}
    return jwt.encode(payload, site.key["identity_secret"], algorithm="HS256")


def sign_hs512(claims: dict[str, Any], key: bytes, **header: str) -> str:
    """Signs with a key that PyJWT finds too short for this algorithm."""
    parts = [encode_part({"alg": "HS512", **header}), encode_part(claims)]
    signature = hmac.digest(key, ".".join(parts).encode(), "sha512")
    return ".".join([*parts, encode_raw(signature)])


def encode_part(value: object) -> str:
    return encode_raw(msgspec.json.encode(value))


def encode_raw(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


async def visit_as(site: Site, sub: str = "customer-7", **claims: Any) -> Visit:
    return await visit(site, user_token=sign_user(site, sub, **claims))


def claims_in(token: str) -> dict[str, Any]:
    """The claims of a visitor token, which is not verified."""
    encoded = token.removeprefix("vst_")
    claims: dict[str, Any] = jwt.decode(encoded, options={"verify_signature": False})
    return claims


def sign_claims(site: Site, claims: dict[str, Any], secret: bytes | None = None) -> str:
    """Signs claims like a visitor token of this instance, or with another secret."""
    keyring = site.talk.world.services.keyring
    key = secret or visitor_tokens._key(keyring, keyring.active)
    encoded = jwt.encode(claims, key, algorithm="HS256", headers={"kid": keyring.active})
    return f"vst_{encoded}"
