"""Random sequences of actions on MFA give the same results as a model in memory."""

from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import httpx
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from app.kit import clock
from tests.identity.mfa.api_calls import API
from tests.identity.mfa.authenticators import Authenticator, FrozenClock, find_wrong_code
from tests.lengths import rounds
from tests.world import PASSWORD, Client, World

WAITS = (15, 30, 60, 120, 240, 480, 900)
MAX_DEVICES = 10
UNKNOWN_DEVICE = "dev_nothing"


class Action(NamedTuple):
    """One action of a session; `pick` selects one of several devices or codes."""

    kind: str
    code: str
    session: int
    pick: int


ACTION_KINDS = ["verify", "sign in", "use twice", "send wrong codes"]
ACTION_KINDS += ["set up", "enable", "add", "remove", "disable", "regenerate"]
CODE_KINDS = ["fresh", "recovery", "pending", "used"]
CODE_KINDS += ["used recovery", "pending recovery", "wrong"]
KIND_AFTER_USE = {"fresh": "used", "recovery": "used recovery"}
ACTIONS = st.lists(
    st.builds(
        Action,
        kind=st.sampled_from(ACTION_KINDS),
        code=st.sampled_from(CODE_KINDS),
        session=st.integers(0, 1),
        pick=st.integers(0, 9),
    ),
    min_size=12,
    max_size=14,
)


class WrongCodes:
    """Counts wrong codes in a row, and blocks further codes for a while."""

    def __init__(self) -> None:
        self._wrong = 0
        self._blocked_until: datetime | None = None

    @property
    def is_blocked(self) -> bool:
        return self._blocked_until is not None and self._blocked_until > clock.now()

    def count(self, *, right: bool) -> None:
        self._wrong = 0 if right else self._wrong + 1
        self._blocked_until = None
        if self._wrong >= 5:
            wait = WAITS[min(self._wrong - 5, len(WAITS) - 1)]
            self._blocked_until = clock.now() + timedelta(seconds=wait)


class Model:
    """The state of MFA in memory: devices, codes, the pending set-up, verified sessions."""

    def __init__(self) -> None:
        self.devices: dict[str, Authenticator] = {}
        self.recovery_codes: list[str] = []
        self.pending: tuple[Authenticator, list[str]] | None = None
        self.verified_sessions: set[int] = set()
        self.wrong_codes = WrongCodes()
        # Codes that were valid once and are not any more.
        self.used_codes: list[str] = []
        self.void_recovery_codes: list[str] = []

    @property
    def is_on(self) -> bool:
        return bool(self.devices)

    def status(self) -> dict[str, Any]:
        return {
            "enabled": self.is_on,
            "method": "totp",
            "devices_count": len(self.devices),
            "recovery_codes_remaining": len(self.recovery_codes),
        }

    def code(self, kind: str, pick: int) -> tuple[str, bool]:
        """Returns a code of this kind, and whether it is valid while MFA is on."""
        match kind:
            case "fresh" if self.devices:
                authenticators = list(self.devices.values())
                return authenticators[pick % len(authenticators)].code(), True
            case "recovery" if self.recovery_codes:
                return self.recovery_codes[pick % len(self.recovery_codes)], True
            case "used" if self.used_codes:
                return self.used_codes[-1], False
            case "used recovery" if self.void_recovery_codes:
                return self.void_recovery_codes[-1 - pick % len(self.void_recovery_codes)], False
            case "pending recovery" if self.pending is not None:
                return self.pending[1][pick], False
            case "pending" if self.pending is not None:
                return self.pending[0].code(), False
        return self._find_wrong_code(), False

    def _find_wrong_code(self) -> str:
        pending = [self.pending[0]] if self.pending else []
        return find_wrong_code(*self.devices.values(), *pending)

    def count_code(self, code: str, *, right: bool) -> None:
        self.wrong_codes.count(right=right)
        if right and code in self.recovery_codes:
            self.recovery_codes.remove(code)
            self.void_recovery_codes.append(code)
        elif right:
            self.used_codes.append(code)

    def replace_codes(self, codes: list[str]) -> None:
        self.void_recovery_codes += self.recovery_codes
        self.recovery_codes = list(codes)

    def turn_off(self) -> None:
        self.replace_codes([])
        self.devices.clear()
        self.verified_sessions.clear()
        self.pending = None


class Comparison:
    """Runs actions on the application and on the model, and compares their states."""

    def __init__(self, world: World, user: Client, frozen_clock: FrozenClock) -> None:
        self.model = Model()
        self._world = world
        self._user = user
        self._clock = frozen_clock
        self._sessions: list[Client] = []
        self._actions: dict[str, Callable[[Action], Awaitable[None]]] = {
            "add": self._add,
            "set up": self._set_up,
            "enable": self._enable,
            "remove": self._remove,
            "disable": self._disable,
            "regenerate": self._regenerate,
            "verify": self._verify,
            "sign in": self._sign_in,
            "use twice": self._use_twice,
            "send wrong codes": self._send_wrong_codes,
        }

    async def open_sessions(self) -> None:
        """Opens two sessions without a code."""
        answers = [await self._login() for _ in range(2)]
        self._sessions = [
            Client(self._world.app, answer.json()["access_token"]) for answer in answers
        ]

    async def run(self, action: Action) -> None:
        self._clock.advance()
        await self._actions[action.kind](action)
        await self._compare()

    async def _compare(self) -> None:
        session = self._sessions[0]
        assert (await session.get(f"{API}/status")).json() == self.model.status()
        devices = (await session.get(f"{API}/devices")).json()["devices"]
        assert [device["id"] for device in devices] == list(self.model.devices)
        assert (await session.get("/auth/me")).json()["mfa_enabled"] is self.model.is_on

    async def _post(self, action: Action, route: str, code: str | None = None) -> httpx.Response:
        body = None if code is None else {"code": code}
        return await self._sessions[action.session].post(f"{API}/{route}", body)

    async def _login(self) -> httpx.Response:
        body = {"email": self._user.email, "password": PASSWORD}
        return await self._world.anonymous().post("/auth/login", body)

    def _may_change(self, action: Action) -> bool:
        return not self.model.is_on or action.session in self.model.verified_sessions

    async def _add(self, action: Action) -> None:
        await self._set_up(action)
        await self._enable(action._replace(code="pending"))

    async def _set_up(self, action: Action) -> None:
        answer = await self._post(action, "setup")
        if not self._may_change(action):
            assert answer.status_code == 403
        elif len(self.model.devices) == MAX_DEVICES:
            assert answer.status_code == 409
        else:
            assert answer.status_code == 200
            setup = answer.json()
            self.model.pending = (
                Authenticator(self._clock, setup["secret"]),
                setup["recovery_codes"],
            )

    async def _enable(self, action: Action) -> None:
        model = self.model
        code, _ = model.code(action.code, action.pick)
        answer = await self._post(action, "enable", code)
        if model.wrong_codes.is_blocked:
            assert answer.status_code == 429
        elif model.pending is None:
            assert answer.status_code == 409
        elif action.code == "pending" and not self._may_change(action):
            # The code is valid, but this session may not add a device: the code stays unused.
            assert answer.status_code == 403
        elif action.code == "pending":
            assert answer.status_code == 200
            authenticator, codes = model.pending
            model.count_code(code, right=True)
            model.replace_codes(codes)
            model.devices[await self._find_new_device()] = authenticator
            model.pending = None
            model.verified_sessions.add(action.session)
        else:
            assert answer.status_code == 422
            model.count_code(code, right=False)

    async def _find_new_device(self) -> str:
        devices = (await self._sessions[0].get(f"{API}/devices")).json()["devices"]
        (new,) = {device["id"] for device in devices} - set(self.model.devices)
        return str(new)

    async def _remove(self, action: Action) -> None:
        device_ids = [*self.model.devices, UNKNOWN_DEVICE]
        device_id = device_ids[action.pick % len(device_ids)]
        answer = await self._sessions[action.session].delete(f"{API}/devices/{device_id}")
        if device_id == UNKNOWN_DEVICE:
            assert answer.status_code == 404
        elif not self._may_change(action):
            assert answer.status_code == 403
        else:
            assert answer.status_code == 200
            del self.model.devices[device_id]
            if not self.model.devices:
                self.model.turn_off()

    async def _disable(self, action: Action) -> None:
        model = self.model
        code, right = model.code(action.code, action.pick)
        answer = await self._post(action, "disable", code)
        if not model.is_on:
            assert answer.status_code == 409
        elif model.wrong_codes.is_blocked:
            assert answer.status_code == 429
        else:
            assert answer.status_code == (200 if right else 422)
            model.count_code(code, right=right)
            if right:
                model.turn_off()

    async def _regenerate(self, action: Action) -> None:
        answer = await self._post(action, "recovery-codes")
        if not self.model.is_on:
            assert answer.status_code == 409
        elif not self._may_change(action):
            assert answer.status_code == 403
        else:
            assert answer.status_code == 200
            self.model.replace_codes(answer.json()["recovery_codes"])

    async def _verify(self, action: Action) -> None:
        model = self.model
        code, right = model.code(action.code, action.pick)
        answer = await self._post(action, "verify", code)
        if model.wrong_codes.is_blocked:
            assert answer.status_code == 429
            return
        assert answer.json() == {"valid": right}
        if model.is_on:
            model.count_code(code, right=right)
        if right:
            model.verified_sessions.add(action.session)

    async def _use_twice(self, action: Action) -> None:
        """Uses the same code for a sign-in and for a verification in the same step."""
        await self._sign_in(action)
        await self._verify(
            action._replace(code=KIND_AFTER_USE.get(action.code, action.code), pick=0)
        )

    async def _send_wrong_codes(self, action: Action) -> None:
        for _ in range(3):
            await self._verify(action._replace(code="wrong"))

    async def _sign_in(self, action: Action) -> None:
        model = self.model
        first = (await self._login()).json()
        assert ("mfa_token" in first) is model.is_on
        if not model.is_on:
            return
        code, right = model.code(action.code, action.pick)
        body = {"mfa_token": first["mfa_token"], "code": code}
        answer = await self._world.anonymous().post("/auth/mfa/verify", body)
        if model.wrong_codes.is_blocked:
            assert answer.status_code == 429
        else:
            assert answer.status_code == (200 if right else 401)
            model.count_code(code, right=right)


@settings(
    max_examples=rounds(5, 15),
    deadline=None,
    # A failing sequence is short enough to read; shrinking it would take minutes.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(actions=ACTIONS)
async def test_mfa_matches_the_model_after_every_action(
    world: World, actions: list[Action]
) -> None:
    with ExitStack() as stack:
        frozen_clock = FrozenClock(stack)
        comparison = Comparison(world, await world.user(), frozen_clock)
        await comparison.open_sessions()
        for action in [Action("add", "pending", 0, 0), *actions]:
            await comparison.run(action)
