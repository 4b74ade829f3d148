"""Documents: uploading, reading their state, replacing, indexing again, deleting."""

import os
from datetime import timedelta
from functools import partial
from typing import Any

import httpx
import msgspec
import pytest

from app.domain.agents.knowledge import parsing, uploads
from app.domain.agents.knowledge.chunk_store import ChunkStore
from app.jobs import work
from app.kit import clock
from app.kit.files import FileNotStored, StoredFile
from app.main import create_app
from app.services import Services
from db.session import Tx
from tests.agents.knowledge.librarian import HANDBOOK, Librarian
from tests.assertions import refused, wait_until
from tests.database import fetch_rows
from tests.model_server import Reply
from tests.scripted_agents import Talker
from tests.stores import Stores
from tests.world import Client, World

MISSING = "doc_00000000000000000000000000"


@pytest.mark.usefixtures("_read_in_children")
async def test_a_document_is_read_cut_searched_and_quoted(
    talk: Talker, librarian: Librarian
) -> None:
    accepted = await librarian.upload(handbook_md=HANDBOOK)
    assert (accepted["status"], accepted["document_count"]) == ("training", 1)
    assert accepted["message"] == "1 document is being read"
    document = await librarian.wait_for(accepted["documents"][0]["id"])
    assert document | {"created_at": "", "processed_at": "", "progress": None} == {
        "id": document["id"],
        "name": "handbook.md",
        "status": "ready",
        "error": None,
        "visibility": "public",
        "mime_type": "text/markdown",
        "size_bytes": len(HANDBOOK),
        "chunk_count": 2,
        "refined_count": 0,
        "language": "en",
        "tags": [],
        "groups": [],
        "valid_from": None,
        "valid_until": None,
        "fields": {},
        **dict.fromkeys(("created_at", "processed_at"), ""),
        **dict.fromkeys(("source_id", "source_url", "progress")),
    }
    page = await librarian.chunks(document["id"])
    assert [chunk["position"] for chunk in page["data"]] == [0, 1]
    found = await librarian.search("When does the shop open on Sundays?")
    assert found[0]["document_name"] == "handbook.md"
    assert "eleven" in found[0]["content"]
    talk.script(Reply(texts=["At eleven [1]."]))
    reply = await talk.say("When does the shop open on Sundays?")
    assert reply["sources"][0]["document_name"] == "handbook.md"
    assert "eleven" in talk.asked[-1]["messages"][0]["content"]


@pytest.mark.usefixtures("_read_in_children")
async def test_the_agent_and_its_status_count_documents(librarian: Librarian) -> None:
    await librarian.add(handbook_md=HANDBOOK, empty_txt=b"")
    agent = (await librarian.client.get(librarian.path)).json()
    expected = {"enabled": True, "document_count": 2, "chunk_count": 2}
    assert agent["knowledge_base"] == expected
    status = (await librarian.client.get(f"{librarian.path}/status")).json()
    assert status["training"] == {"status": "ready", "documents_total": 2, "documents_done": 2}


async def test_the_status_of_training_follows_its_documents(
    talk: Talker, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The documents are due tomorrow: the worker of other tests would read them now."""
    path = f"{talk.path}/status"

    async def training() -> Any:
        return (await talk.client.get(path)).json()["training"]

    assert await training() == {"status": "idle", "documents_total": 0, "documents_done": 0}
    librarian = Librarian(talk.client, talk.agent_id)
    accept_later = partial(work.accept, run_at=clock.now() + timedelta(days=1))
    with monkeypatch.context() as patch:
        patch.setattr(work, "accept", accept_later)
        accepted = await librarian.upload(one_txt=b"one", two_txt=b"two")
    assert await training() == {"status": "training", "documents_total": 2, "documents_done": 0}
    ids = [document["id"] for document in accepted["documents"]]
    set_status = "UPDATE documents SET status = $2 WHERE id = $1"
    for document_id, status, expected in (
        (ids[0], "failed", "training"),
        (ids[1], "failed", "failed"),
        (ids[1], "ready", "ready"),
    ):
        await fetch_rows(services, set_status, document_id, status)
        assert (await training())["status"] == expected
    await fetch_rows(services, "DELETE FROM work WHERE ref_id = ANY($1)", ids)


async def test_a_document_that_was_read_is_logged_and_emitted(librarian: Librarian) -> None:
    document, failed = await librarian.add(handbook_md=HANDBOOK, empty_txt=b"")
    answer = await librarian.client.get(f"{librarian.path}/logs", params={"type": "training"})
    entries = {entry["data"]["document_id"]: entry for entry in answer.json()["data"]}
    assert entries[document["id"]]["content"] == "handbook.md: 2 chunks"
    assert entries[document["id"]]["conversation_id"] is None
    assert entries[failed["id"]]["content"] == "empty.txt: The file is empty"
    query = {"event_type": "system.document.processed"}
    log = (await librarian.client.get("/api/v1/event-log", params=query)).json()
    statuses = {event["data"]["document_id"]: event["data"]["status"] for event in log["data"]}
    assert statuses == {document["id"]: "ready", failed["id"]: "failed"}


async def test_one_file_that_cannot_be_used_does_not_fail_the_others(librarian: Librarian) -> None:
    big = b"x" * (25 * 1024 * 1024 + 2)
    accepted = await librarian.upload(good_txt="A good text.", tool_exe=b"MZ", big_txt=big)
    assert accepted["document_count"] == 3
    assert "2 cannot be used" in accepted["message"]
    good, tool, large = accepted["documents"]
    assert (await librarian.wait_for(good["id"]))["status"] == "ready"
    assert (tool["status"], tool["error"]) == (
        "failed",
        f"The file is not a {parsing.FORMATS} file",
    )
    assert (large["status"], large["error"]) == ("failed", "The file is larger than 25 MB")
    assert large["size_bytes"] == len(big)


async def test_uploads_that_are_refused_as_a_whole(talk: Talker) -> None:
    path, http = f"{talk.path}/train", talk.client.http
    refused(
        await http.post(path, files=[("files", ("tool.exe", b"MZ"))]), 415, "unsupported_file_type"
    )
    two = [("files", ("a.txt", b"1")), ("files", ("a.txt", b"2"))]
    error = refused(await http.post(path, files=two), 422, "validation_error")
    assert "two files with the name a.txt" in error["message"]
    many = [("files", (f"{number}.txt", b"1")) for number in range(51)]
    refused(await http.post(path, files=many), 422, "validation_error")
    refused(await http.post(path, files=[("other", ("a.txt", b"1"))]), 422, "validation_error")
    refused(await http.post(path, json={"files": []}), 422, "validation_error")


async def test_the_setting_limits_files_and_requests(stores: Stores) -> None:
    settings = msgspec.structs.replace(stores.settings, max_body_mb=1)
    app = create_app(settings)
    client = await World(app).user()
    body = {"name": "Docs", "primary_model": "local/smollm2", "system_prompt": "Help."}
    agent_id = (await client.post("/api/v1/agents", body)).json()["id"]
    librarian = Librarian(client, agent_id)
    megabyte = b"x" * 1024 * 1024
    accepted = await librarian.upload(full_txt=megabyte, over_txt=megabyte + b"x")
    assert [document["error"] for document in accepted["documents"]] == [
        None,
        "The file is larger than 1 MB",
    ]
    parts = [("files", ("large.txt", megabyte * 6))]
    answer = await client.http.post(f"{librarian.path}/train", files=parts)
    refused(answer, 413, "file_too_large")
    await client.delete(librarian.path)
    await app.state.services.close()


async def test_a_file_name_has_no_path_and_no_invisible_characters(librarian: Librarian) -> None:
    names = {
        "../../etc/passwd.txt": "passwd.txt",
        "C:\\docs\\plan.md": "plan.md",
        "a\u202etxt.md": "atxt.md",
        "two\u2028 li\u200bnes.txt": "two lines.txt",
        "cafe\u0301.txt": "caf\u00e9.txt",
        "\u0645\u06cc\u200c\u062e.txt": "\u0645\u06cc\u200c\u062e.txt",
    }
    parts = [("files", (name, b"One, two")) for name in [*names, "x" * 300 + ".csv"]]
    answer = await librarian.client.http.post(f"{librarian.path}/train", files=parts)
    *stored, long = [document["name"] for document in answer.json()["documents"]]
    assert stored == list(names.values())
    assert len(long) <= 255
    assert long.endswith(".csv")


async def test_documents_are_listed_filtered_and_sorted(librarian: Librarian) -> None:
    await librarian.add(beta_txt="Some text", alpha_md="# A\n\nText", empty_txt=b"")

    async def names(**query: str) -> list[str]:
        answer = await librarian.client.get(f"{librarian.path}/documents", params=query)
        return [document["name"] for document in answer.json()["data"]]

    assert await names(sort="name") == ["alpha.md", "beta.txt", "empty.txt"]
    assert await names(status="failed") == ["empty.txt"]
    assert await names(search="ALPH") == ["alpha.md"]
    answer = await librarian.client.get(f"{librarian.path}/documents", params={"sort": "file_key"})
    refused(answer, 422, "validation_error")


async def test_chunks_are_paged_in_the_order_of_the_document(librarian: Librarian) -> None:
    sections = "\n\n".join(f"# Part {number}\n\nText number {number}." for number in range(7))
    (document,) = await librarian.add(parts_md=sections)
    first = await librarian.chunks(document["id"], per_page=3)
    assert first["pagination"] == {"page": 1, "per_page": 3, "total": 7, "total_pages": 3}
    last = await librarian.chunks(document["id"], page=3, per_page=3)
    texts = [chunk["text"] for chunk in [*first["data"], *last["data"]]]
    assert [text.split()[1] for text in texts] == ["0", "1", "2", "6"]
    assert (await librarian.chunks(document["id"], page=4, per_page=3))["data"] == []


async def test_the_original_is_downloaded_as_an_attachment(librarian: Librarian) -> None:
    content = "<script>alert(1)</script> Größe".encode()
    (document,) = await librarian.add(**{"grö ße_txt": content})
    answer = await librarian.client.get(f"{librarian.path}/documents/{document['id']}/content")
    assert answer.content == content
    assert answer.headers.get_list("content-type") == ["text/plain"]
    assert answer.headers["content-disposition"] == (
        "attachment; filename*=UTF-8''gr%C3%B6%20%C3%9Fe.txt"
    )
    assert answer.headers["content-length"] == str(len(content))
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_a_file_of_the_same_name_replaces_the_document(librarian: Librarian) -> None:
    (first,) = await librarian.add(hours_txt="The shop opens at nine.")
    (second,) = await librarian.add(hours_txt="The shop opens at ten.")
    assert second["id"] == first["id"]
    contents = [passage["content"] for passage in await librarian.search("When does it open?")]
    assert contents == ["The shop opens at ten."]
    content = await librarian.client.get(f"{librarian.path}/documents/{first['id']}/content")
    assert content.text == "The shop opens at ten."


async def test_an_upload_survives_the_deletion_of_the_document_that_it_replaces(
    librarian: Librarian, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The document is deleted after the new file was stored, and before it was accepted."""
    (first,) = await librarian.add(hours_txt="The shop opens at nine.")
    put = services.files.put_stream

    async def put_and_delete(key: str, *args: Any) -> StoredFile:
        stored = await put(key, *args)
        await librarian.client.delete(f"{librarian.path}/documents/{first['id']}")
        return stored

    monkeypatch.setattr(services.files, "put_stream", put_and_delete)
    (second,) = await librarian.add(hours_txt="The shop opens at ten.")
    assert (second["status"], second["error"]) == ("ready", None)
    assert second["id"] != first["id"]


async def test_an_upload_to_an_agent_that_is_deleted_meanwhile_leaves_no_file(
    librarian: Librarian, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, put = [], services.files.put_stream

    async def put_and_delete(key: str, *args: Any) -> StoredFile:
        keys.append(key)
        stored = await put(key, *args)
        await librarian.client.delete(librarian.path)
        return stored

    monkeypatch.setattr(services.files, "put_stream", put_and_delete)
    files = [("files", ("hours.txt", b"The shop opens at ten."))]
    answer = await librarian.client.http.post(f"{librarian.path}/train", files=files)
    refused(answer, 404, "agent_not_found")
    with pytest.raises(FileNotStored):
        await services.files.read(keys[0])


async def test_a_file_stays_when_the_reply_to_its_commit_is_lost(
    librarian: Librarian, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The document may be accepted although the client got an error."""
    commit, accept, accepting = Tx.commit, uploads._accept, list[Tx]()

    async def remember(tx: Tx, *args: Any) -> Any:
        accepting.append(tx)
        return await accept(tx, *args)

    async def commit_and_fail(tx: Tx) -> None:
        await commit(tx)
        if tx in accepting:
            raise ConnectionError("the reply was lost")

    monkeypatch.setattr(uploads, "_accept", remember)
    monkeypatch.setattr(Tx, "commit", commit_and_fail)
    files = [("files", ("hours.txt", b"The shop opens at ten."))]
    answer = await librarian.client.http.post(f"{librarian.path}/train", files=files)
    assert answer.status_code >= 500
    (document,) = (await librarian.client.get(f"{librarian.path}/documents")).json()["data"]
    assert (await librarian.wait_for(document["id"]))["status"] == "ready"


async def test_a_replacement_that_fails_leaves_the_old_chunks_in_use(librarian: Librarian) -> None:
    (first,) = await librarian.add(hours_txt="The shop opens at nine.")
    (second,) = await librarian.add(hours_txt=b"\x00\x01\x02 not a text")
    assert (second["id"], second["status"]) == (first["id"], "failed")
    assert second["chunk_count"] == 1
    contents = [passage["content"] for passage in await librarian.search("When does it open?")]
    assert contents == ["The shop opens at nine."]


async def test_a_document_is_indexed_again_without_duplicates(librarian: Librarian) -> None:
    (document,) = await librarian.add(handbook_md=HANDBOOK)
    path = f"{librarian.path}/documents/{document['id']}/reindex"
    answer = await librarian.client.post(path)
    assert (answer.status_code, answer.json()["status"]) == (202, "pending")
    assert (await librarian.wait_for(document["id"]))["chunk_count"] == 2
    assert len(await librarian.search("shop goods", limit=50)) == 2


async def test_a_refused_document_cannot_be_indexed_again(librarian: Librarian) -> None:
    accepted = await librarian.upload(good_txt="A good text.", tool_exe=b"MZ")
    tool = accepted["documents"][1]
    answer = await librarian.client.post(f"{librarian.path}/documents/{tool['id']}/reindex")
    refused(answer, 409, "conflict")
    answer = await librarian.client.get(f"{librarian.path}/documents/{tool['id']}/content")
    refused(answer, 404, "document_not_found")


async def test_a_deleted_document_is_not_found_at_once_and_its_traces_are_removed(
    talk: Talker, librarian: Librarian, services: Services
) -> None:
    kept, deleted = await librarian.add(kept_txt="Cats purr.", secret_txt="Dogs bark at night.")
    path = f"{librarian.path}/documents/{deleted['id']}"
    assert (await librarian.client.delete(path)).status_code == 204
    refused(await librarian.client.get(path), 404, "document_not_found")
    refused(await librarian.client.get(f"{path}/chunks"), 404, "document_not_found")
    refused(await librarian.client.get(f"{path}/content"), 404, "document_not_found")
    refused(await librarian.client.delete(path), 404, "document_not_found")
    found = await librarian.search("Do dogs bark at night?")
    assert {passage["document_id"] for passage in found} <= {kept["id"]}

    async def is_gone() -> bool:
        return not await fetch_rows(
            services, "SELECT 1 FROM documents WHERE id = $1", deleted["id"]
        )

    await wait_until(is_gone)
    folder = services.settings.data_dir / "files" / "documents" / librarian.agent_id
    assert len(list(folder.rglob("fil_*"))) == 1


async def test_a_missing_document_is_not_found(talk: Talker) -> None:
    path = f"{talk.path}/documents/{MISSING}"
    for method, suffix in (
        ("GET", ""), ("DELETE", ""), ("GET", "/chunks"), ("GET", "/content"), ("POST", "/reindex"),
    ):  # fmt: skip
        refused(await talk.client(method, path + suffix), 404, "document_not_found")
    other = f"/api/v1/agents/agt_00000000000000000000000000/documents/{MISSING}"
    refused(await talk.client.get(other), 404, "document_not_found")


async def test_a_document_of_another_agent_is_not_found(talk: Talker, librarian: Librarian) -> None:
    (document,) = await librarian.add(handbook_md=HANDBOOK)
    other = await talk.agent()
    path = f"{other.path}/documents/{document['id']}"
    for suffix in ("", "/chunks", "/content"):
        refused(await talk.client.get(path + suffix), 404, "document_not_found")
    assert await Librarian(talk.client, other.agent_id).search("shop") == []


async def test_roles_that_cannot_change_agents_neither_read_nor_change_documents(
    world: World, librarian: Librarian
) -> None:
    (document,) = await librarian.add(handbook_md=HANDBOOK)
    viewer: Client = await world.user("viewer", librarian.client.tenant_id)
    path = f"{librarian.path}/documents/{document['id']}"

    def status(answer: httpx.Response) -> int:
        return answer.status_code

    parts = [("files", ("a.txt", b"1"))]
    assert status(await viewer.http.post(f"{librarian.path}/train", files=parts)) == 403
    assert status(await viewer.post(f"{path}/reindex")) == 403
    assert status(await viewer.delete(path)) == 403
    for suffix in ("", "/chunks", "/content"):
        assert status(await viewer.get(path + suffix)) == 403
    assert status(await viewer.get(f"{librarian.path}/documents")) == 403
    assert status(await viewer.post(f"{librarian.path}/search", {"query": "shop"})) == 403


async def test_an_agent_takes_its_tables_and_files_along(
    librarian: Librarian, services: Services
) -> None:
    await librarian.add(handbook_md=HANDBOOK)
    store, agent_id = services.get(ChunkStore), librarian.agent_id
    assert await store.list_tables(agent_id)
    assert (await librarian.client.delete(librarian.path)).status_code == 204
    folder = services.settings.data_dir / "files" / "documents" / agent_id

    async def is_gone() -> bool:
        # Unlike `rglob`, it does not fail for a folder that is deleted meanwhile.
        files = [
            name for _, _, names in os.walk(folder) for name in names if name.startswith("fil_")
        ]
        return not await store.list_tables(agent_id) and not files

    await wait_until(is_gone)
