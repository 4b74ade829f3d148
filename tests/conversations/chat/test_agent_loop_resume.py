"""The agent loop continues after stored rounds."""

import pytest

from app.domain.agents.tools.offers import CallOutcome
from app.domain.conversations.chat.stream_events import ToolResult, ToolUse
from app.domain.conversations.chat.tool_calls import Call, Round, fail_unknown_calls
from tests.conversations.chat.agent_loop import LoopRunner, RecordingJournal, StubToolbox, join_text
from tests.conversations.chat.delegation_scripts import list_offered, reply_with_calls
from tests.model_server import Reply


def _build_round(*calls: Call, text: str = "") -> Round:
    return Round(text, list(calls), used={"scripted/loop": [10, 1]})


async def test_every_round_is_saved_before_and_after_it_runs(loop_runner: LoopRunner) -> None:
    journal = RecordingJournal([])
    loop_runner.script(
        reply_with_calls(("tool", {}), ("tool", {})), reply_with_calls(("tool", {})), Reply()
    )
    await loop_runner.run(StubToolbox(CallOutcome("ok")), journal=journal)
    assert journal.saves == [(1, 0), (1, 2), (2, 2), (2, 3)]


async def test_a_stored_outcome_is_reported_without_running_the_tool(
    loop_runner: LoopRunner,
) -> None:
    toolbox = StubToolbox(CallOutcome("new"))
    call = Call("c1", "tool", '{"a":1}', "Tool", None, "old", "completed", 5)
    journal = RecordingJournal([_build_round(call, text="Wait.")])
    loop_runner.script(Reply(texts=["Fine."], usage=(20, 2)))
    steps = await loop_runner.run(toolbox, journal=journal)
    assert toolbox.arguments == []
    assert steps[1:3] == [
        ToolUse("c1", "Tool", None, {"a": 1}, function="tool"),
        ToolResult("c1", "Tool", None, "old", "completed", 5),
    ]
    assert join_text(steps) == "Wait.\n\nFine."
    roles = [message["role"] for message in loop_runner.asked[0]["messages"]]
    assert roles == ["user", "assistant", "tool"]
    assert (loop_runner.budget.prompt_tokens, loop_runner.budget.completion_tokens) == (30, 3)


async def test_texts_of_stored_rounds_are_repeated(loop_runner: LoopRunner) -> None:
    call = Call("c1", "tool", "{}", "Tool", None, "ok", "completed")
    journal = RecordingJournal([_build_round(call, text="One."), _build_round(call, text="Two.")])
    loop_runner.script(Reply(texts=["Three."]))
    steps = await loop_runner.run(StubToolbox(CallOutcome("ok")), journal=journal)
    assert join_text(steps) == "One.\n\nTwo.\n\nThree."


async def test_stored_rounds_count_for_the_limit_of_ten(loop_runner: LoopRunner) -> None:
    calls = [Call(f"c{n}", "tool", "{}", "Tool", None, "ok", "completed") for n in range(9)]
    journal = RecordingJournal([_build_round(call) for call in calls])
    loop_runner.script(reply_with_calls(("tool", {}), texts=["More!"]))
    await loop_runner.run(StubToolbox(CallOutcome("ok")), journal=journal)
    assert [bool(list_offered(request)) for request in loop_runner.asked] == [True, False]


async def test_a_call_without_an_outcome_runs_again_only_if_it_is_repeatable(
    loop_runner: LoopRunner, subtests: pytest.Subtests
) -> None:
    for repeatable in (True, False):
        with subtests.test(repeatable=repeatable):
            toolbox = StubToolbox(CallOutcome("ok"), repeatable=repeatable)
            journal = RecordingJournal([_build_round(Call("c1", "tool", "{}", "Tool"))])
            fail_unknown_calls(journal.rounds, [toolbox])
            loop_runner.script(Reply())
            steps = await loop_runner.run(toolbox, journal=journal)
            (result,) = (step for step in steps if isinstance(step, ToolResult))
            assert len(toolbox.arguments) == int(repeatable)
            assert result.status == ("completed" if repeatable else "failed")
