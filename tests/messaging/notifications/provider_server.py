"""A stub of all hosted providers: it checks each request and answers as their APIs document it."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, quote

import msgspec
from aiohttp import web

from app.domain.messaging.notifications.providers.sms import MAX_CHARS
from app.net.http_auth import basic, bearer
from tests.peer import Handler, Peer

KEY = "planted-key-0123456789"
ACCOUNT_SID = "AC" + "0123456789abcdef" * 2
SERVICE_SID = "MG" + "0123456789abcdef" * 2
DOMAIN = "mg.example.com"
CHANNEL = "C024BE91L"
SLACK_PATH = "/services/T00000000/B00000000/plantedXXXXXXXXXXXXXXXXX"


class ProviderCall(msgspec.Struct):
    """A request that the stub received."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def form(self) -> dict[str, str]:
        assert self.headers["content-type"] == "application/x-www-form-urlencoded"
        return dict(parse_qsl(self.body.decode(), keep_blank_values=True, strict_parsing=True))

    @property
    def authorization(self) -> dict[str, str]:
        return {"Authorization": self.headers.get("authorization", "")}


Respond = Callable[[ProviderCall], web.Response]


class Stub(msgspec.Struct, frozen=True, kw_only=True):
    """How the server plays one provider."""

    type: str
    # The keys of the config that are secrets.
    secrets: list[str] = []
    # Where its API is, if the config can name another one.
    api_base: str | None = None
    # The key of the config with the only place that its notices go to.
    place: str | None = None
    # By the address of the server: a config with which a notice is accepted.
    config: Callable[[str], dict[str, Any]]
    route: str
    # Checks the request, and answers as the provider documents it.
    respond: "Callable[[ProviderServer, ProviderCall], web.Response]"
    # A refusal with "because" where the provider gives its reason.
    refusal: Any = None
    # A key of the config, a wrong value, which may have the address as {url}, and a part of the
    # failure that it causes.
    wrong_value: tuple[str, str, str] | None = None


class ProviderServer(Peer):
    """`accepted` has the requests that a provider would carry out. With `respond` a test answers in
    its own way; while `hold` is an event, the stub answers nothing until it is set.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[ProviderCall] = []
        self.accepted: list[ProviderCall] = []
        self.reset()

    def reset(self) -> None:
        self.calls.clear()
        self.accepted.clear()
        self.respond: Respond | None = None
        self.hold: Any = None
        self._resend_bodies: dict[str, bytes] = {}

    def answer(self, status: int, body: Any = None, headers: dict[str, str] | None = None) -> None:
        """Gives all following requests this answer."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.respond = lambda _call: web.Response(status=status, body=content, headers=headers)

    def config(self, provider: str, **more: Any) -> dict[str, Any]:
        """Returns a config with which the stub accepts a notice."""
        return STUBS[provider].config(self.url) | more

    def routes(self) -> dict[str, Handler]:
        answers: dict[str, Respond] = {
            stub.route: partial(stub.respond, self) for stub in STUBS.values()
        }
        answers["* /{rest:.*}"] = lambda _call: web.Response(status=404, text="no such path")
        return {route: self._handle(respond) for route, respond in answers.items()}

    def _handle(self, respond: Respond) -> Handler:
        async def handle(request: web.Request) -> web.Response:
            headers = {name.lower(): value for name, value in request.headers.items()}
            call = ProviderCall(request.method, request.raw_path, headers, await request.read())
            self.calls.append(call)
            if self.hold is not None:
                await self.hold.wait()
            return (self.respond or respond)(call)

        return handle

    def accept(self, call: ProviderCall, response: web.Response) -> web.Response:
        self.accepted.append(call)
        return response

    def answer_sendgrid(self, call: ProviderCall) -> web.Response:
        if call.authorization != bearer(KEY):
            text = "The provided authorization grant is invalid, expired, or revoked"
            return _json(401, errors=[{"message": text, "field": None, "help": None}])
        if not {"personalizations", "from", "subject", "content"} <= call.json.keys():
            return _json(400, errors=[{"message": "Bad Request", "field": None, "help": None}])
        return self.accept(call, web.Response(status=202))

    def answer_mailgun(self, call: ProviderCall) -> web.Response:
        if call.authorization != basic("api", KEY):
            return web.Response(status=401, text="Forbidden")
        if not {"from", "to", "subject"} <= call.form.keys():
            return _json(400, message="from parameter is missing")
        message_id = f"<20261116120000.1@{DOMAIN}>"
        return self.accept(call, _json(200, id=message_id, message="Queued. Thank you."))

    def answer_resend(self, call: ProviderCall) -> web.Response:
        if call.authorization != bearer(KEY):
            return _resend_error(401, "validation_error", "API key is invalid")
        if not {"from", "to", "subject"} <= call.json.keys():
            return _resend_error(422, "missing_required_field", "Missing `to` field.")
        key = call.headers.get("idempotency-key", "")
        if key in self._resend_bodies:
            if self._resend_bodies[key] != call.body:
                text = "Same idempotency key used with a different request payload."
                return _resend_error(409, "invalid_idempotent_request", text)
            return _json(200, id=key)
        self._resend_bodies[key] = call.body
        return self.accept(call, _json(200, id=key))

    def answer_slack_webhook(self, call: ProviderCall) -> web.Response:
        if not call.json.get("text"):
            return web.Response(status=400, text="no_text")
        return self.accept(call, web.Response(text="ok"))

    def answer_slack_bot(self, call: ProviderCall) -> web.Response:
        error = None
        if call.authorization != bearer(KEY):
            error = "invalid_auth"
        elif call.json.get("channel") != CHANNEL:
            error = "channel_not_found"
        elif not call.json.get("text"):
            error = "no_text"
        if error is not None:
            return _json(200, ok=False, error=error)
        return self.accept(call, _json(200, ok=True, channel=CHANNEL, ts="1503435956.000247"))

    def answer_twilio(self, call: ProviderCall) -> web.Response:
        if call.authorization != basic(ACCOUNT_SID, KEY):
            return _twilio_error(401, 20003, "Authenticate")
        fields = call.form.keys()
        if "To" not in fields:
            return _twilio_error(400, 21604, "A 'To' phone number is required.")
        if len(fields & {"From", "MessagingServiceSid"}) != 1:
            return _twilio_error(400, 21603, "A 'From' phone number is required.")
        if len(call.form["Body"].encode("utf-16-le")) > 2 * MAX_CHARS:
            text = "The concatenated message body exceeds the 1600 character limit"
            return _twilio_error(400, 21617, text)
        return self.accept(call, _json(201, sid="SM" + "0" * 32, status="queued"))

    def answer_vonage(self, call: ProviderCall) -> web.Response:
        if (call.form.get("api_key"), call.form.get("api_secret")) != ("abcd1234", KEY):
            return vonage_answer("4", "Bad Credentials")
        if not {"from", "to", "text"} <= call.form.keys():
            return vonage_answer("2", "Missing to param")
        return self.accept(call, vonage_answer("0"))

    def answer_webhook(self, call: ProviderCall) -> web.Response:
        return self.accept(call, web.Response(text="thank you"))


def _json(status: int, /, **body: Any) -> web.Response:
    return web.json_response(body, status=status)


def _resend_error(status: int, name: str, message: str) -> web.Response:
    return _json(status, statusCode=status, name=name, message=message)


def _twilio_error(status: int, code: int, message: str) -> web.Response:
    info = f"https://www.twilio.com/docs/errors/{code}"
    return _json(status, code=code, message=message, more_info=info, status=status)


def vonage_body(*parts: tuple[str, str]) -> dict[str, Any]:
    """Returns an answer with a status and an error for each part of a message."""
    messages = [
        {"status": status} | ({"error-text": error} if error else {"message-id": "0C0000"})
        for status, error in parts
    ]
    return {"message-count": str(len(parts)), "messages": messages}


def vonage_answer(status: str, error: str = "") -> web.Response:
    return web.json_response(vonage_body((status, error)))


# By the ids of the providers.
STUBS: dict[str, Stub] = {
    "sendgrid": Stub(
        type="email",
        secrets=["api_key"],
        api_base="https://api.sendgrid.com",
        config=lambda url: {"api_key": KEY, "from": "Ann <ann@example.com>", "api_base": url},
        route="POST /v3/mail/send",
        respond=ProviderServer.answer_sendgrid,
        refusal={"errors": [{"message": "because", "field": None}]},
        wrong_value=("api_key", "wrong", "401: The provided authorization grant is invalid"),
    ),
    "mailgun": Stub(
        type="email",
        secrets=["api_key"],
        api_base="https://api.mailgun.net",
        config=lambda url: {
            "api_key": KEY,
            "domain": DOMAIN,
            "from": "Ann <ann@example.com>",
            "api_base": url,
        },
        route=f"POST /v3/{DOMAIN}/messages",
        respond=ProviderServer.answer_mailgun,
        refusal={"message": "because"},
        wrong_value=("api_key", "wrong", "401: Forbidden"),
    ),
    "resend": Stub(
        type="email",
        secrets=["api_key"],
        api_base="https://api.resend.com",
        config=lambda url: {"api_key": KEY, "from": "Ann <ann@example.com>", "api_base": url},
        route="POST /emails",
        respond=ProviderServer.answer_resend,
        refusal={"statusCode": 400, "name": "x", "message": "because"},
        wrong_value=("api_key", "wrong", "401: API key is invalid"),
    ),
    "slack_webhook": Stub(
        type="team_chat",
        secrets=["webhook_url"],
        config=lambda url: {"webhook_url": f"{url}{SLACK_PATH}"},
        route=f"POST {SLACK_PATH}",
        respond=ProviderServer.answer_slack_webhook,
        refusal=b"because",
        wrong_value=("webhook_url", "{url}/services/x", "404: no such path"),
    ),
    "slack_bot": Stub(
        type="team_chat",
        secrets=["token"],
        api_base="https://slack.com/api",
        place="channel",
        config=lambda url: {"token": KEY, "channel": CHANNEL, "api_base": f"{url}/api"},
        route="POST /api/chat.postMessage",
        respond=ProviderServer.answer_slack_bot,
        refusal={"ok": False, "error": "because"},
        wrong_value=("token", "wrong", "Slack answered: invalid_auth"),
    ),
    "webhook": Stub(
        type="webhook",
        secrets=["secret"],
        config=lambda url: {"url": f"{url}/hook"},
        route="* /hook",
        respond=ProviderServer.answer_webhook,
    ),
    "twilio": Stub(
        type="sms",
        secrets=["auth_token"],
        api_base="https://api.twilio.com",
        config=lambda url: {
            "account_sid": ACCOUNT_SID,
            "auth_token": KEY,
            "from": "+14155550100",
            "api_base": url,
        },
        route=f"POST /2010-04-01/Accounts/{quote(ACCOUNT_SID)}/Messages.json",
        respond=ProviderServer.answer_twilio,
        refusal={"code": 1, "message": "because", "status": 400},
        wrong_value=("auth_token", "wrong", "401: Authenticate"),
    ),
    "vonage": Stub(
        type="sms",
        secrets=["api_secret"],
        api_base="https://rest.nexmo.com",
        config=lambda url: {
            "api_key": "abcd1234",
            "api_secret": KEY,
            "from": "Parley",
            "api_base": url,
        },
        route="POST /sms/json",
        respond=ProviderServer.answer_vonage,
        refusal=vonage_body(("2", "because")),
        wrong_value=("api_secret", "wrong", "status 4: Bad Credentials"),
    ),
}
