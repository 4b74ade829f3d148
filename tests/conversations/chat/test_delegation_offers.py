"""Functions that a parent's model is offered for its sub-agents."""

import pytest

from app.domain.agents.definition.runtime import SubAgentInfo
from app.domain.conversations.chat import delegation
from tests.conversations.chat.delegation_scripts import (
    add_sub_agent,
    build_call,
    list_offered,
    reply_with_calls,
)
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import PROVIDER, Talker, talker
from tests.world import World


async def test_a_sub_agent_is_offered_as_a_function(talk: Talker) -> None:
    await add_sub_agent(talk, "Fact Finder", link={"delegation_prompt": "Looks up facts"})
    await talk.say("Hello")
    (tool,) = talk.asked[0]["tools"]
    assert tool["type"] == "function"
    function = tool["function"]
    assert function["name"] == "delegate_to_fact_finder"
    assert function["description"] == "Looks up facts"
    assert function["parameters"]["type"] == "object"
    assert function["parameters"]["required"] == ["task"]
    assert function["parameters"]["properties"]["task"]["type"] == "string"


async def test_the_description_of_a_function_comes_from_prompt_description_or_name(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for prompt, description, expected in (
        ("Finds facts", "A finder", "Finds facts"),
        ("", "A finder", "A finder"),
        ("", "", "Hand a task over to Finder"),
    ):
        with subtests.test(prompt=prompt, description=description, expected=expected):
            talk = await talker(world, models)
            await add_sub_agent(
                talk, "Finder", link={"delegation_prompt": prompt}, description=description
            )
            await talk.say("Hello")
            assert talk.asked[0]["tools"][0]["function"]["description"] == expected


async def test_an_agent_without_sub_agents_is_offered_nothing(talk: Talker) -> None:
    await talk.say("Hello")
    assert "tools" not in talk.asked[0]


async def test_every_name_gives_a_valid_function_name(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for names, functions in (
        (["Über Größe!"], ["ber_gr_e"]),
        (["研究"], ["agent"]),
        (["--- a  b ---"], ["a_b"]),
        (["Same", "same", "SAME"], ["same", "same_2", "same_3"]),
        (["x" * 100], ["x" * 40]),
        (["x" * 100, "x" * 99], ["x" * 40, "x" * 40 + "_2"]),
    ):
        with subtests.test(names=names, functions=functions):
            talk = await talker(world, models)
            for name in names:
                await add_sub_agent(talk, name)
            await talk.say("Hello")
            offered = list_offered(talk.asked[0])
            assert offered == [f"delegate_to_{name}" for name in functions]
            assert all(len(name) <= 64 for name in offered)


@pytest.mark.timeout(3, method="signal")
def test_long_similar_names_give_different_functions() -> None:
    """Runs without a server: an endless loop here would block the whole process."""
    names = ["a" * 48, "a" * 46 + " 3", "a" * 48 + "b"]
    children = [SubAgentInfo(f"agt_{name}", name, "published", "", "") for name in names]
    offers = delegation._offers(children)
    assert len({offer.function.name for offer in offers}) == 3


async def test_children_with_the_same_name_are_each_reached(talk: Talker) -> None:
    first, second = await add_sub_agent(talk, "Same"), await add_sub_agent(talk, "Same")
    second.script(Reply(texts=["I am the second."]))
    talk.script(reply_with_calls(build_call("same_2")), Reply())
    reply = await talk.say("Hello")
    assert reply["tool_calls"][0]["output"] == "I am the second."
    assert reply["tool_calls"][0]["tool_id"] == second.agent_id
    assert first.asked == []


async def test_draft_and_published_children_are_offered_in_the_console(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for status in ("draft", "published"):
        with subtests.test(status=status):
            talk = await talker(world, models)
            await add_sub_agent(talk, "Kid", status=status)
            await talk.say("Hello")
            assert list_offered(talk.asked[0]) == ["delegate_to_kid"]


async def test_an_archived_child_is_not_offered(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    await add_sub_agent(talk, "Other")
    await child.client.put(child.path, {"status": "archived"})
    await talk.say("Hello")
    assert list_offered(talk.asked[0]) == ["delegate_to_other"]


async def test_a_disabled_child_is_not_offered_until_it_is_enabled(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid", link={"is_enabled": False})
    await talk.say("Hello")
    assert "tools" not in talk.asked[0]
    path = f"{talk.path}/sub-agents/{child.agent_id}"
    await talk.client("PATCH", path, json={"is_enabled": True})
    await talk.say("Hello")
    assert list_offered(talk.asked[1]) == ["delegate_to_kid"]


async def test_a_detached_child_is_not_offered(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    await talk.client.delete(f"{talk.path}/sub-agents/{child.agent_id}")
    await talk.say("Hello")
    assert "tools" not in talk.asked[0]


async def test_a_direct_sub_agent_is_offered_and_answers(talk: Talker, models: ModelServer) -> None:
    body = {
        "name": "Own",
        "primary_model": f"{PROVIDER}/own-model",
        "system_prompt": "You are mine.",
        "delegation_prompt": "Does what I say",
        "temperature": 0.25,
    }
    child = (await talk.client.post(f"{talk.path}/sub-agents/direct", body)).json()
    models.script("own-model", Reply(texts=["Done."]))
    talk.script(reply_with_calls(build_call("own")), Reply())
    (call,) = (await talk.say("Hello"))["tool_calls"]
    assert (call["tool_id"], call["output"]) == (child["id"], "Done.")
    assert models.asked("own-model")[-1]["temperature"] == 0.25
