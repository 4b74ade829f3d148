"""Shares a few processes fairly between groups, which are tenants: one evaluation of a group runs
at a time, and groups whose evaluations took too long come last and never hold all processes.
"""

import asyncio
from collections import OrderedDict, deque

from app.jobs.background import spawn
from app.kit import logs
from app.kit.errors import Unavailable
from app.templating.expressions.budget import Budget
from app.templating.expressions.problems import Overrun
from app.templating.expressions.process import EvaluationProcess, Reason
from db.connection_use import check_wait

log = logs.get("expressions")

_STOPPING = "Expressions are not evaluated: the process is stopping"
_SLOW_SECONDS = 60.0
_MIN_RESTART_SECONDS = 0.2
_MAX_RESTART_SECONDS = 10.0


class _Evaluation:
    __slots__ = (
        "answer",
        "budget",
        "content",
        "group",
        "is_second_attempt",
        "seconds",
        "since",
        "timeout",
    )

    def __init__(
        self, group: str, content: bytes, budget: Budget, answer: asyncio.Future[bytes]
    ) -> None:
        self.group = group
        self.content = content
        self.budget = budget
        self.answer = answer
        self.is_second_attempt = False
        self.timeout: asyncio.TimerHandle | None = None
        # When it began to wait, or to run.
        self.since = 0.0
        # How long it may run.
        self.seconds = 0.0

    def measure(self) -> float:
        """Returns the seconds since the last call."""
        now = asyncio.get_running_loop().time()
        seconds, self.since = now - self.since, now
        return seconds


class ProcessPool:
    """Starts its processes with the first evaluation, and replaces those that end."""

    def __init__(self, *, processes: int, seconds: float, memory_mib: int) -> None:
        self._size = processes
        self._seconds = seconds
        self._memory_mib = memory_mib
        self._started: set[EvaluationProcess] = set()
        self._ending: set[EvaluationProcess] = set()
        self._idle: list[EvaluationProcess] = []
        self._running: dict[EvaluationProcess, _Evaluation] = {}
        self._running_groups: set[str] = set()
        # Groups in the order of their last evaluation: the first one is next.
        self._waiting: OrderedDict[str, deque[_Evaluation]] = OrderedDict()
        self._slow_until: dict[str, float] = {}
        self._failed_starts = 0
        self._has_logged_missing = False
        self._is_closed = False

    async def ask(self, group: str, content: bytes, budget: Budget | None = None) -> bytes:
        """Returns the answer of a process. Raises Overrun when the request ends the process or its
        budget is used up, Unavailable when no process was free in time.
        """
        budget = budget or Budget()
        budget.check()
        check_wait("a process for expressions")
        if self._is_closed:
            raise Unavailable(_STOPPING)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        evaluation = _Evaluation(group, content, budget, answer)
        self._wait(evaluation)
        self._start_processes()
        self._dispatch()
        try:
            return await evaluation.answer
        finally:
            # A cancelled caller leaves a running evaluation to its process.
            if evaluation.timeout:
                evaluation.timeout.cancel()

    async def close(self) -> None:
        self._is_closed = True
        for evaluations in self._waiting.values():
            for evaluation in evaluations:
                _fail(
                    evaluation,
                    Unavailable(_STOPPING),
                )
        self._waiting.clear()
        ending = [*self._started, *self._ending]
        for process in ending:
            process.end("closed")
        await asyncio.gather(*(process.wait_gone() for process in ending))

    def _start_processes(self) -> None:
        while len(self._started) < self._size and not self._is_closed:
            process = EvaluationProcess(self._on_ready, self._on_answer, self._on_end)
            self._started.add(process)
            spawn(process.start(seconds=self._seconds, memory_mib=self._memory_mib))

    def _dispatch(self) -> None:
        while self._idle and (evaluation := self._take_next()):
            process = self._idle.pop()
            self._running[process] = evaluation
            self._running_groups.add(evaluation.group)
            if evaluation.timeout:
                evaluation.timeout.cancel()
            evaluation.budget.wait_seconds_left -= evaluation.measure()
            evaluation.seconds = min(self._seconds, max(0.0, evaluation.budget.seconds_left))
            process.send(evaluation.content, evaluation.seconds)

    def _wait(self, evaluation: _Evaluation) -> None:
        """Puts an evaluation to the end of its group's queue, a second attempt to its start."""
        loop = asyncio.get_running_loop()
        evaluation.since = loop.time()
        seconds = max(0.0, evaluation.budget.wait_seconds_left)
        evaluation.timeout = loop.call_later(seconds, _expire, evaluation)
        evaluations = self._waiting.setdefault(evaluation.group, deque())
        if evaluation.is_second_attempt:
            evaluations.appendleft(evaluation)
        else:
            evaluations.append(evaluation)

    def _take_next(self) -> _Evaluation | None:
        """Removes and returns the next evaluation that may run now."""
        while (group := self._find_group()) is not None:
            evaluations = self._waiting[group]
            evaluation = evaluations.popleft()
            if evaluations:
                self._waiting.move_to_end(group)
            else:
                del self._waiting[group]
            if not evaluation.answer.done():
                return evaluation
        return None

    def _find_group(self) -> str | None:
        slow_group = None
        for group in self._waiting:
            if group in self._running_groups:
                continue
            if not self._is_slow(group):
                return group
            slow_group = slow_group or group
        running = sum(map(self._is_slow, self._running_groups))
        return slow_group if running < max(1, self._size - 1) else None

    def _is_slow(self, group: str) -> bool:
        until = self._slow_until.get(group)
        return until is not None and until > asyncio.get_running_loop().time()

    def _mark_slow(self, group: str) -> None:
        now = asyncio.get_running_loop().time()
        self._slow_until = {key: until for key, until in self._slow_until.items() if until > now}
        self._slow_until[group] = now + _SLOW_SECONDS

    def _release(self, process: EvaluationProcess) -> _Evaluation | None:
        evaluation = self._running.pop(process, None)
        if evaluation:
            self._running_groups.discard(evaluation.group)
            evaluation.budget.seconds_left -= evaluation.measure()
        return evaluation

    def _on_ready(self, process: EvaluationProcess, missing: list[str]) -> None:
        self._failed_starts = 0
        if missing and not self._has_logged_missing:
            self._has_logged_missing = True
            log.warning("processes for expressions are isolated less", missing=missing)
        self._idle.append(process)
        self._dispatch()

    def _on_answer(self, process: EvaluationProcess, content: bytes, *, is_last: bool) -> None:
        evaluation = self._release(process)
        if evaluation and not evaluation.answer.done():
            evaluation.answer.set_result(content)
        if is_last:
            process.end("memory")
        else:
            self._idle.append(process)
            self._dispatch()

    def _on_end(self, process: EvaluationProcess, reason: Reason) -> None:
        self._started.discard(process)
        if process in self._idle:
            self._idle.remove(process)
        evaluation = self._release(process)
        if reason == "closed":
            if evaluation:
                _fail(evaluation, Unavailable(_STOPPING))
            return
        self._ending.add(process)
        spawn(self._forget(process))
        group = evaluation.group if evaluation else None
        log.warning("a process for expressions is replaced", reason=reason, group=group)
        if evaluation:
            self._settle(evaluation, reason)
        if reason == "start":
            self._failed_starts += 1
            delay = min(_MAX_RESTART_SECONDS, _MIN_RESTART_SECONDS * 2**self._failed_starts)
            asyncio.get_running_loop().call_later(delay, self._start_processes)
        else:
            self._start_processes()
        self._dispatch()

    async def _forget(self, process: EvaluationProcess) -> None:
        await process.wait_gone()
        self._ending.discard(process)

    def _settle(self, evaluation: _Evaluation, reason: Reason) -> None:
        if reason == "killed" and not evaluation.is_second_attempt:
            # Not by the expression: another process evaluates it.
            evaluation.is_second_attempt = True
            self._wait(evaluation)
            return
        self._mark_slow(evaluation.group)
        if reason == "time" and evaluation.seconds < self._seconds:
            # The process may have stopped a little before the end by the clock of this one.
            evaluation.budget.seconds_left = min(0.0, evaluation.budget.seconds_left)
        if evaluation.budget.seconds_left <= 0:
            message = evaluation.budget.overrun_message
        elif reason == "time":
            message = f"the expression takes longer than {self._seconds:g} s"
        elif reason == "memory":
            message = f"the expression takes more than {self._memory_mib} MiB of memory"
        else:
            message = "the expression takes too much memory or nests too deeply"
        _fail(evaluation, Overrun(message))


def _expire(evaluation: _Evaluation) -> None:
    _fail(evaluation, Unavailable("Expressions are busy. Try again in 5 seconds."))


def _fail(evaluation: _Evaluation, error: Exception) -> None:
    if not evaluation.answer.done():
        evaluation.answer.set_exception(error)
