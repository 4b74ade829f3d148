"""The agent loop without an agent: budget, outcomes, cancellation."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from app.domain.agents.llm.errors import ModelFailed
from app.domain.agents.llm.protocol import Message
from app.domain.agents.tools.offers import CallOutcome, ToolOffer
from app.domain.conversations.chat.agent_loop import TokenBudget, run_loop
from app.domain.conversations.chat.stream_events import (
    ModelAccepted,
    TextDelta,
    ToolResult,
    ToolUse,
)
from app.domain.conversations.chat.toolbox import Report
from tests.assertions import until
from tests.conversations.chat.agent_loop import LoopRunner, StubToolbox, join_text
from tests.conversations.chat.delegation_scripts import list_offered, reply_with_calls
from tests.model_server import Reply


async def test_a_small_budget_ends_the_rounds(loop_runner: LoopRunner) -> None:
    toolbox = StubToolbox(CallOutcome("ok"))
    loop_runner.budget = TokenBudget(limit=50)
    loop_runner.script(reply_with_calls(("tool", {}), texts=["More!"], usage=(10, 7)))
    steps = await loop_runner.run(toolbox)
    # 17, 34, 51 tokens: the third round's call still runs, the fourth request has no tools.
    assert [bool(list_offered(request)) for request in loop_runner.asked] == [
        True,
        True,
        True,
        False,
    ]
    assert len(toolbox.arguments) == 3
    assert (loop_runner.budget.prompt_tokens, loop_runner.budget.completion_tokens) == (40, 28)
    assert join_text(steps) == "More!\n\nMore!\n\nMore!\n\nMore!"


async def test_a_budget_that_is_used_up_at_the_start_still_gives_an_answer(
    loop_runner: LoopRunner,
) -> None:
    loop_runner.budget = TokenBudget(limit=10)
    loop_runner.budget.add("another-model", 10, 0)
    loop_runner.script(Reply(texts=["Hi."]))
    assert join_text(await loop_runner.run(StubToolbox(CallOutcome("ok")))) == "Hi."
    assert not list_offered(loop_runner.asked[0])


async def test_usage_that_the_model_does_not_report_is_estimated(loop_runner: LoopRunner) -> None:
    loop_runner.script(Reply(texts=["x" * 70], usage=None))
    await loop_runner.run()
    assert loop_runner.budget.prompt_tokens > 0
    assert loop_runner.budget.completion_tokens == 21


async def test_an_answer_that_breaks_off_counts_as_used(loop_runner: LoopRunner) -> None:
    loop_runner.script(Reply(texts=["x" * 70, "never said"], drop_after=1))
    with pytest.raises(ModelFailed):
        await loop_runner.run(live=True)
    assert loop_runner.budget.prompt_tokens > 0
    assert loop_runner.budget.completion_tokens == 21


async def test_an_abandoned_answer_counts_as_used(loop_runner: LoopRunner) -> None:
    loop_runner.script(Reply(texts=["x" * 70] * 2, delay=0.01))
    loop_events = run_loop(
        loop_runner.build_config(live=True), [Message("user", "Hello")], loop_runner.budget
    )
    async with aclosing(loop_events) as steps:
        async for step in steps:
            if isinstance(step, TextDelta):
                break
    assert loop_runner.budget.completion_tokens == 21


async def test_an_outcome_is_reported_with_its_status(
    loop_runner: LoopRunner, subtests: pytest.Subtests
) -> None:
    for status in ("completed", "failed", "timeout"):
        with subtests.test(status=status):
            loop_runner.script(reply_with_calls(("tool", {"a": 1})), Reply())
            steps = await loop_runner.run(StubToolbox(CallOutcome({"b": 2}, status)))
            used, result = (step for step in steps if isinstance(step, ToolUse | ToolResult))
            assert isinstance(used, ToolUse)
            assert (used.tool, used.input, used.function) == ("Tool", {"a": 1}, "tool")
            assert isinstance(result, ToolResult)
            assert (result.id, result.output, result.status) == (used.id, {"b": 2}, status)
            assert loop_runner.asked[-1]["messages"][-1]["content"] == '{"b":2}'


async def test_the_error_of_a_failing_tool_is_not_disclosed(loop_runner: LoopRunner) -> None:
    loop_runner.script(reply_with_calls(("tool", {})), Reply(texts=["Fine."]))
    steps = await loop_runner.run(StubToolbox(RuntimeError("password=hunter2")))
    (result,) = (step for step in steps if isinstance(step, ToolResult))
    assert (result.status, result.output) == ("failed", {"error": "the tool failed"})
    assert join_text(steps) == "Fine."


async def test_the_first_toolbox_with_a_function_name_handles_its_calls(
    loop_runner: LoopRunner,
) -> None:
    first, second = StubToolbox(CallOutcome("1")), StubToolbox(CallOutcome("2"))
    loop_runner.script(reply_with_calls(("tool", {})), Reply())
    await loop_runner.run(first, second)
    assert list_offered(loop_runner.asked[0]) == ["tool"]
    assert (len(first.arguments), len(second.arguments)) == (1, 0)


class EndlessToolbox(StubToolbox):
    """A tool that runs until it is cancelled."""

    running = 0

    async def run(
        self, offer: ToolOffer, call_id: str, arguments: dict[str, Any], report: Report
    ) -> CallOutcome:
        self.running += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.running -= 1
        return await super().run(offer, call_id, arguments, report)


async def test_closing_the_loop_cancels_running_tools(loop_runner: LoopRunner) -> None:
    toolbox = EndlessToolbox(CallOutcome("never"))
    loop_runner.script(reply_with_calls(("tool", {}), ("tool", {})))
    loop_events = run_loop(
        loop_runner.build_config(toolbox), [Message("user", "Hello")], loop_runner.budget
    )
    async with aclosing(loop_events) as steps:
        assert await anext(steps) == ModelAccepted()
        assert isinstance(await anext(steps), ToolUse)
        assert isinstance(await anext(steps), ToolUse)
        pending = asyncio.ensure_future(anext(steps))
        await until(lambda: toolbox.running == 2)
        pending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pending
    assert (toolbox.running, toolbox.arguments) == (0, [])
