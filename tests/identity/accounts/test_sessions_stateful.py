"""Random sequences of session operations, compared with a model."""

import asyncio
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any, ClassVar, TypeVar

import httpx
import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)
from litestar import Litestar

from app.kit import clock
from tests.lengths import rounds
from tests.world import PASSWORD, Client, World

T = TypeVar("T")
GRACE_PERIOD = timedelta(seconds=10)
ACCESS_LIFETIME = timedelta(minutes=15)


class Session(msgspec.Struct, eq=False):
    is_active: bool = True


class Pair(msgspec.Struct, eq=False):
    """The tokens of one sign-in or refresh."""

    session: Session
    at: datetime
    access: str
    refresh: str


class Exchange(msgspec.Struct):
    """The time of the first use of a refresh token, and the content of the response."""

    at: datetime
    content: bytes


class Model:
    """The expected state of one user's sessions."""

    def __init__(self) -> None:
        self.now = clock.now().replace(microsecond=0) - timedelta(days=1)
        self.password = PASSWORD
        self.pairs: list[Pair] = []
        self.exchanges: dict[str, Exchange] = {}

    def accepts(self, pair: Pair) -> bool:
        return pair.session.is_active and self.now < pair.at + ACCESS_LIFETIME

    def list_spent_pairs(self) -> list[Pair]:
        return [
            pair for pair in self.pairs if pair.session.is_active and pair.refresh in self.exchanges
        ]

    def end_all_but(self, current: Session) -> None:
        for pair in self.pairs:
            pair.session.is_active = pair.session.is_active and pair.session is current


class Machine(RuleBasedStateMachine):
    """Runs the same operations on the application and the model. The clock starts a day ago and
    stays in the past, so that no token is issued in the future.
    """

    world: ClassVar[World]
    loop: ClassVar[asyncio.AbstractEventLoop]
    pairs: Bundle[Pair] = Bundle("pairs")

    def __init__(self) -> None:
        super().__init__()
        self._model = Model()
        self._caller = self.world.anonymous()
        self._user: Client = self._run(self.world.user())
        self._needs_check = False

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        with clock.frozen(self._model.now):
            return self.loop.run_until_complete(call)

    def _post(self, path: str, body: object = None, token: str | None = None) -> httpx.Response:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return self._run(self._caller.post(path, body, headers=headers))

    def _get_me_status(self, pair: Pair) -> int:
        headers = {"authorization": f"Bearer {pair.access}"}
        return self._run(self._caller.get("/auth/me", headers=headers)).status_code

    def _add_pair(self, session: Session, answer: httpx.Response) -> Pair:
        assert answer.status_code == 200, answer.text
        body = answer.json()
        pair = Pair(session, self._model.now, body["access_token"], body["refresh_token"])
        self._model.pairs.append(pair)
        return pair

    # Operations

    @initialize(target=pairs)
    def begin(self) -> Pair:
        return self._sign_in()

    @rule(target=pairs)
    def sign_in(self) -> Pair:
        return self._sign_in()

    def _sign_in(self) -> Pair:
        body = {"email": self._user.email, "password": self._model.password}
        return self._add_pair(Session(), self._post("/auth/login", body))

    @rule(seconds=st.sampled_from([1, 5, 9, 10, 11, 60, 900]))
    def wait(self, seconds: int) -> None:
        self._model.now += timedelta(seconds=seconds)

    @rule(target=pairs, pair=pairs)
    def refresh(self, pair: Pair) -> Pair | MultipleResults[Pair]:
        """Uses any token that was issued: current, older or ended."""
        return self._refresh(pair)

    @precondition(lambda self: self._model.list_spent_pairs())
    @rule(data=st.data(), pause=st.sampled_from([0, 1, 10, 11]))
    def reuse_refresh_token(self, data: st.DataObject, pause: int) -> None:
        """Uses a spent token of an active session again."""
        pair = data.draw(st.sampled_from(self._model.list_spent_pairs()))
        self._model.now += timedelta(seconds=pause)
        self._refresh(pair)

    def _refresh(self, pair: Pair) -> Pair | MultipleResults[Pair]:
        answer = self._post("/auth/refresh", {"refresh_token": pair.refresh})
        before = self._model.exchanges.get(pair.refresh)
        if pair.session.is_active and before is None:
            self._model.exchanges[pair.refresh] = Exchange(self._model.now, answer.content)
            return self._add_pair(pair.session, answer)
        if pair.session.is_active and before and self._model.now <= before.at + GRACE_PERIOD:
            assert (answer.status_code, answer.content) == (200, before.content)
            return multiple()
        assert answer.status_code == 401
        self._end(pair.session)
        return multiple()

    @rule(pair=pairs)
    def sign_out(self, pair: Pair) -> None:
        expected = 200 if self._model.accepts(pair) else 401
        assert self._post("/auth/logout", token=pair.access).status_code == expected
        if expected == 200:
            self._end(pair.session)

    @rule(pair=pairs)
    def change_password(self, pair: Pair) -> None:
        new = f"{self._model.password}1"
        body = {"current_password": self._model.password, "new_password": new}
        expected = 200 if self._model.accepts(pair) else 401
        assert self._post("/auth/change-password", body, pair.access).status_code == expected
        if expected == 200:
            self._model.password = new
            self._model.end_all_but(pair.session)
            self._needs_check = True

    def _end(self, session: Session) -> None:
        session.is_active = False
        self._needs_check = True

    # Invariants

    @rule(pair=pairs)
    def check_token(self, pair: Pair) -> None:
        assert self._get_me_status(pair) == (200 if self._model.accepts(pair) else 401)

    @invariant()
    def only_active_sessions_are_accepted(self) -> None:
        if self._needs_check:
            self._needs_check = False
            actual = {pair.access: self._get_me_status(pair) == 200 for pair in self._model.pairs}
            assert actual == {pair.access: self._model.accepts(pair) for pair in self._model.pairs}


@pytest.fixture(scope="session")
async def loop() -> asyncio.AbstractEventLoop:
    """The application's event loop, which is idle while a synchronous test runs."""
    return asyncio.get_running_loop()


def test_every_token_is_accepted_or_refused_as_the_model_says(
    app: Litestar, loop: asyncio.AbstractEventLoop
) -> None:
    Machine.world, Machine.loop = World(app), loop
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=rounds(10, 50),
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
