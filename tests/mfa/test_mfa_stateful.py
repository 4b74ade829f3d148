"""MFA beside a plain model of it: whatever is done, in any order, both say the same."""

from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import httpx
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from app.kit import clock
from tests.mfa.test_mfa import API, Hand, Phone
from tests.world import PASSWORD, Client, World

WAITS = (15, 30, 60, 120, 240, 480, 900)
MAX_DEVICES = 10
UNKNOWN = "dev_nothing"


class Do(NamedTuple):
    """One thing to do; `session` and `pick` say who does it, and with which of several."""

    what: str
    code: str
    session: int
    pick: int


WHAT = ["verify", "sign in", "replay", "fumble"]
WHAT += ["set up", "enable", "add", "remove", "disable", "regenerate"]
CODES = ["fresh", "recovery", "pending", "used"]
CODES += ["used recovery", "pending recovery", "wrong"]
AGAIN = {"fresh": "used", "recovery": "used recovery"}
DEEDS = st.lists(
    st.builds(
        Do,
        what=st.sampled_from(WHAT),
        code=st.sampled_from(CODES),
        session=st.integers(0, 1),
        pick=st.integers(0, 9),
    ),
    min_size=12,
    max_size=14,
)


class Guesses:
    """How many codes were wrong in a row, and until when nobody listens."""

    def __init__(self) -> None:
        self._wrong = 0
        self._until: datetime | None = None

    @property
    def must_wait(self) -> bool:
        return self._until is not None and self._until > clock.now()

    def count(self, *, right: bool) -> None:
        self._wrong = 0 if right else self._wrong + 1
        self._until = None
        if self._wrong >= 5:
            wait = WAITS[min(self._wrong - 5, len(WAITS) - 1)]
            self._until = clock.now() + timedelta(seconds=wait)


class Model:
    """What MFA is, without a database: devices, codes, what is set up, who has shown a code."""

    def __init__(self) -> None:
        self.devices: dict[str, Phone] = {}
        self.recovery: list[str] = []
        self.pending: tuple[Phone, list[str]] | None = None
        self.shown: set[int] = set()
        self.guesses = Guesses()
        # What worked once and never does again.
        self.used: list[str] = []
        self.void: list[str] = []

    @property
    def on(self) -> bool:
        return bool(self.devices)

    def status(self) -> dict[str, Any]:
        return {
            "enabled": self.on,
            "method": "totp",
            "devices_count": len(self.devices),
            "recovery_codes_remaining": len(self.recovery),
        }

    def code(self, kind: str, pick: int) -> tuple[str, bool]:
        """A code of this kind, and whether it is right where MFA is on."""
        match kind:
            case "fresh" if self.devices:
                phones = list(self.devices.values())
                return phones[pick % len(phones)].code(), True
            case "recovery" if self.recovery:
                return self.recovery[pick % len(self.recovery)], True
            case "used" if self.used:
                return self.used[-1], False
            case "used recovery" if self.void:
                return self.void[-1 - pick % len(self.void)], False
            case "pending recovery" if self.pending is not None:
                return self.pending[1][pick], False
            case "pending" if self.pending is not None:
                return self.pending[0].code(), False
        return self._wrong(), False

    def _wrong(self) -> str:
        phones = [*self.devices.values(), *([self.pending[0]] if self.pending else [])]
        near = {phone.code(steps) for phone in phones for steps in (-1, 0, 1)}
        return next(code for code in map("{:06}".format, range(100)) if code not in near)

    def judge(self, code: str, *, right: bool) -> None:
        self.guesses.count(right=right)
        if right and code in self.recovery:
            self.recovery.remove(code)
            self.void.append(code)
        elif right:
            self.used.append(code)

    def replace_codes(self, codes: list[str]) -> None:
        self.void += self.recovery
        self.recovery = list(codes)

    def turn_off(self) -> None:
        self.replace_codes([])
        self.devices.clear()
        self.shown.clear()
        self.pending = None


class Story:
    """Does things to the application and to the model, and compares what each says."""

    def __init__(self, world: World, user: Client, hand: Hand) -> None:
        self.model = Model()
        self._world = world
        self._user = user
        self._hand = hand
        self._sessions: list[Client] = []
        self._deeds: dict[str, Callable[[Do], Awaitable[None]]] = {
            "add": self._add,
            "set up": self._set_up,
            "enable": self._enable,
            "remove": self._remove,
            "disable": self._disable,
            "regenerate": self._regenerate,
            "verify": self._verify,
            "sign in": self._sign_in,
            "replay": self._replay,
            "fumble": self._fumble,
        }

    async def begin(self) -> None:
        """Two sessions that have shown no code."""
        answers = [await self._login() for _ in range(2)]
        self._sessions = [
            Client(self._world.app, answer.json()["access_token"]) for answer in answers
        ]

    async def run(self, do: Do) -> None:
        self._hand.forward()
        await self._deeds[do.what](do)
        await self._compare()

    async def _compare(self) -> None:
        session = self._sessions[0]
        assert (await session.get(f"{API}/status")).json() == self.model.status()
        listed = (await session.get(f"{API}/devices")).json()["devices"]
        assert [device["id"] for device in listed] == list(self.model.devices)
        assert (await session.get("/auth/me")).json()["mfa_enabled"] is self.model.on

    async def _post(self, do: Do, route: str, code: str | None = None) -> httpx.Response:
        body = None if code is None else {"code": code}
        return await self._sessions[do.session].post(f"{API}/{route}", body)

    async def _login(self) -> httpx.Response:
        body = {"email": self._user.email, "password": PASSWORD}
        return await self._world.anonymous().post("/auth/login", body)

    def _trusted(self, do: Do) -> bool:
        return not self.model.on or do.session in self.model.shown

    async def _add(self, do: Do) -> None:
        await self._set_up(do)
        await self._enable(do._replace(code="pending"))

    async def _set_up(self, do: Do) -> None:
        answer = await self._post(do, "setup")
        if not self._trusted(do):
            assert answer.status_code == 403
        elif len(self.model.devices) == MAX_DEVICES:
            assert answer.status_code == 409
        else:
            assert answer.status_code == 200
            made = answer.json()
            self.model.pending = Phone(self._hand, made["secret"]), made["recovery_codes"]

    async def _enable(self, do: Do) -> None:
        model = self.model
        code, _ = model.code(do.code, do.pick)
        answer = await self._post(do, "enable", code)
        if model.guesses.must_wait:
            assert answer.status_code == 429
        elif model.pending is None:
            assert answer.status_code == 409
        elif do.code == "pending" and not self._trusted(do):
            # The code was right, but this session may not add a device: nothing of it is kept.
            assert answer.status_code == 403
        elif do.code == "pending":
            assert answer.status_code == 200
            phone, codes = model.pending
            model.judge(code, right=True)
            model.replace_codes(codes)
            model.devices[await self._newest()] = phone
            model.pending = None
            model.shown.add(do.session)
        else:
            assert answer.status_code == 422
            model.judge(code, right=False)

    async def _newest(self) -> str:
        listed = (await self._sessions[0].get(f"{API}/devices")).json()["devices"]
        (new,) = {device["id"] for device in listed} - set(self.model.devices)
        return str(new)

    async def _remove(self, do: Do) -> None:
        known = [*self.model.devices, UNKNOWN]
        device_id = known[do.pick % len(known)]
        answer = await self._sessions[do.session].delete(f"{API}/devices/{device_id}")
        if device_id == UNKNOWN:
            assert answer.status_code == 404
        elif not self._trusted(do):
            assert answer.status_code == 403
        else:
            assert answer.status_code == 200
            del self.model.devices[device_id]
            if not self.model.devices:
                self.model.turn_off()

    async def _disable(self, do: Do) -> None:
        model = self.model
        code, right = model.code(do.code, do.pick)
        answer = await self._post(do, "disable", code)
        if not model.on:
            assert answer.status_code == 409
        elif model.guesses.must_wait:
            assert answer.status_code == 429
        else:
            assert answer.status_code == (200 if right else 422)
            model.judge(code, right=right)
            if right:
                model.turn_off()

    async def _regenerate(self, do: Do) -> None:
        answer = await self._post(do, "recovery-codes")
        if not self.model.on:
            assert answer.status_code == 409
        elif not self._trusted(do):
            assert answer.status_code == 403
        else:
            assert answer.status_code == 200
            self.model.replace_codes(answer.json()["recovery_codes"])

    async def _verify(self, do: Do) -> None:
        model = self.model
        code, right = model.code(do.code, do.pick)
        answer = await self._post(do, "verify", code)
        if model.guesses.must_wait:
            assert answer.status_code == 429
            return
        assert answer.json() == {"valid": right}
        if model.on:
            model.judge(code, right=right)
        if right:
            model.shown.add(do.session)

    async def _replay(self, do: Do) -> None:
        """The same code at two places at the same time of day."""
        await self._sign_in(do)
        await self._verify(do._replace(code=AGAIN.get(do.code, do.code), pick=0))

    async def _fumble(self, do: Do) -> None:
        for _ in range(3):
            await self._verify(do._replace(code="wrong"))

    async def _sign_in(self, do: Do) -> None:
        model = self.model
        first = (await self._login()).json()
        assert ("mfa_token" in first) is model.on
        if not model.on:
            return
        code, right = model.code(do.code, do.pick)
        body = {"mfa_token": first["mfa_token"], "code": code}
        answer = await self._world.anonymous().post("/auth/mfa/verify", body)
        if model.guesses.must_wait:
            assert answer.status_code == 429
        else:
            assert answer.status_code == (200 if right else 401)
            model.judge(code, right=right)


@settings(
    max_examples=15,
    deadline=None,
    # A failing story is short enough to read; to shorten it would take minutes.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(deeds=DEEDS)
async def test_mfa_is_what_the_model_says_after_every_step(world: World, deeds: list[Do]) -> None:
    with ExitStack() as held:
        hand = Hand(held)
        story = Story(world, await world.user(), hand)
        await story.begin()
        for do in [Do("add", "pending", 0, 0), *deeds]:
            await story.run(do)
