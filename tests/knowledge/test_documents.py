"""Documents from the upload to the answer."""

from tests.knowledge.librarian import HANDBOOK, Librarian
from tests.model_server import Reply
from tests.talk import Talker


async def test_an_uploaded_document_is_read_searched_and_quoted(
    talk: Talker, librarian: Librarian
) -> None:
    accepted = await librarian.upload(handbook_md=HANDBOOK)
    assert accepted["status"] == "training"
    assert accepted["document_count"] == 1
    document = await librarian.wait_for(accepted["documents"][0]["id"])
    assert (document["status"], document["error"], document["chunk_count"]) == ("ready", None, 2)
    page = await librarian.chunks(document["id"])
    assert [chunk["position"] for chunk in page["data"]] == [0, 1]
    found = await librarian.search("When does the shop open on Sundays?")
    assert found[0]["document_name"] == "handbook.md"
    assert "eleven" in found[0]["content"]
    talk.script(Reply(texts=["At eleven [1]."]))
    reply = await talk.say("When does the shop open on Sundays?")
    assert reply["sources"][0]["document_name"] == "handbook.md"
    assert "eleven" in talk.asked[-1]["messages"][0]["content"]
