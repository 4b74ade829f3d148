"""Internal documents, from which agents do not answer visitors."""

from typing import Any

import httpx

from tests.agents.knowledge.librarian import Librarian
from tests.agents.knowledge.test_retrieval import CAFE, QUESTION
from tests.conversations.embed.sites import create_site
from tests.model_server import Reply
from tests.scripted_agents import Talker, events_in
from tests.world import Client

_SECRET = "The shop opens on Sundays at four for the inspectors, which is a secret."


async def _upload(librarian: Librarian, visibility: str | None, **files: str) -> dict[str, Any]:
    """Uploads one file and returns its document once it is read."""
    parts = [("files", (f"{name}.txt", text)) for name, text in files.items()]
    form = {} if visibility is None else {"visibility": visibility}
    answer = await librarian.client.http.post(f"{librarian.path}/train", files=parts, data=form)
    assert answer.status_code == 202, answer.text
    return await librarian.wait_for(answer.json()["documents"][0]["id"])


async def _change(client: Client, path: str, visibility: Any) -> httpx.Response:
    return await client.http.patch(path, json={"visibility": visibility})


def _prompt(talk: Talker) -> str:
    prompt: str = talk.asked[-1]["messages"][0]["content"]
    return prompt


async def test_a_visitor_is_answered_from_public_documents_with_cited_numbers(
    talk: Talker, librarian: Librarian
) -> None:
    """The chain: what a visitor asks, what the model sees, and what the visitor gets."""
    await librarian.add(cafe_txt=CAFE, hours_txt="On Sundays the shop opens at eleven.")
    internal = await _upload(librarian, "internal", inspection=_SECRET)
    assert internal["visibility"] == "internal"
    site = await create_site(talk)
    talk.script(Reply(texts=["At eleven [2]."]), Reply(texts=["At ", "eleven [2], [9]."]))
    reply = await site.say(QUESTION)
    assert _SECRET not in _prompt(talk)
    (source,) = reply["sources"]
    assert source["metadata"]["number"] == 2
    assert f"[2] {source['document_name']}" in _prompt(talk)
    stream = await talk.world.anonymous().post(
        f"{site.path}/chat/stream", site.body(QUESTION), headers=site.headers()
    )
    events = events_in(stream.text)
    assert dict(events)["message_stop"]["sources"] == reply["sources"]
    # Everybody else is answered from it.
    talk.script(Reply(texts=["At four."]))
    shown = await talk.say(QUESTION)
    assert _SECRET in _prompt(talk)
    assert "inspection.txt" in {source["document_name"] for source in shown["sources"]}
    assert all("number" not in source["metadata"] for source in shown["sources"])


async def test_sub_agents_of_a_visitors_turn_read_public_documents_only(
    talk: Talker, librarian: Librarian
) -> None:
    helper = await talk.with_helper()
    theirs = Librarian(talk.client, helper.agent_id)
    await _upload(theirs, "internal", inspection=_SECRET)
    await _upload(theirs, "public", cafe=CAFE)
    call = Reply(calls=[("delegate_to_helper", {"task": QUESTION})])
    talk.script(call, Reply(texts=["At ten [1]."]), call, Reply(texts=["At four."]))
    helper.script(Reply(texts=["At ten."]), Reply(texts=["At four."]))
    reply = await (await create_site(talk)).say("Ask the helper")
    assert _SECRET not in helper.asked[-1]["messages"][0]["content"]
    # Sources of sub-agents stay, whatever the text cites.
    assert [source["document_name"] for source in reply["sources"]] == ["cafe.txt"]
    await talk.say("Ask the helper")
    assert _SECRET in helper.asked[-1]["messages"][0]["content"]


async def test_visibility_is_changed_filtered_and_kept(talk: Talker, librarian: Librarian) -> None:
    document = await _upload(librarian, None, a=CAFE)
    assert document["visibility"] == "public"
    path = f"{librarian.path}/documents"
    changed = await _change(talk.client, f"{path}/{document['id']}", "internal")
    assert (changed.status_code, changed.json()["visibility"]) == (200, "internal")
    for visibility, count in (("internal", 1), ("public", 0)):
        page = (await talk.client.get(path, params={"visibility": visibility})).json()
        assert len(page["data"]) == count
    # A new version keeps it, unless the upload says otherwise.
    assert (await _upload(librarian, None, a=CAFE))["visibility"] == "internal"
    assert (await _upload(librarian, "public", a=CAFE))["visibility"] == "public"


async def _search_as_visitor(librarian: Librarian) -> list[str]:
    body = {"query": QUESTION, "only_public": True}
    answer = await librarian.client.post(f"{librarian.path}/search", body)
    return [passage["content"] for passage in answer.json()["data"]]


async def test_chunks_of_an_internal_version_stay_internal_until_a_public_one_is_read(
    librarian: Librarian,
) -> None:
    await _upload(librarian, "internal", a=_SECRET)
    assert await _search_as_visitor(librarian) == []
    # A file without text fails, and the chunks of the last version stay.
    failed = await _upload(librarian, "public", a="  ")
    assert (failed["status"], failed["visibility"]) == ("failed", "public")
    assert await _search_as_visitor(librarian) == []
    await _upload(librarian, None, a=CAFE)
    assert await _search_as_visitor(librarian) == [CAFE]


async def test_a_search_leaves_out_lower_scores(librarian: Librarian) -> None:
    await librarian.add(cafe_txt=CAFE, hours_txt="The shop opens at nine.")
    found = await librarian.search(QUESTION)
    assert len(found) == 2
    body = {"query": QUESTION, "min_score": found[0]["relevance_score"]}
    answer = await librarian.client.post(f"{librarian.path}/search", body)
    assert answer.json()["data"] == found[:1]


async def test_wrong_visibilities_and_scores_are_refused(librarian: Librarian) -> None:
    document = await _upload(librarian, None, a=CAFE)
    path = f"{librarian.path}/documents/{document['id']}"
    for visibility in (None, "secret", 1):
        assert (await _change(librarian.client, path, visibility)).status_code == 422, visibility
    unknown = await _change(librarian.client, f"{path}x", "public")
    assert unknown.json()["error"]["code"] == "document_not_found"
    parts = [("files", ("b.txt", "text"))]
    answer = await librarian.client.http.post(
        f"{librarian.path}/train", files=parts, data={"visibility": "secret"}
    )
    assert answer.status_code == 422
    for score in (-0.1, 1.1):
        body = {"query": "x", "min_score": score}
        assert (await librarian.client.post(f"{librarian.path}/search", body)).status_code == 422
