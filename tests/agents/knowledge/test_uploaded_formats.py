"""Files of each format, from their upload to the passages of a search."""

from typing import Any

import pytest

from app.domain.agents.knowledge import parsing
from tests.agents.knowledge.librarian import Librarian
from tests.agents.knowledge.sample_office import (
    make_epub,
    make_pptx,
    make_xlsx,
    shape,
    text_rows,
)
from tests.scripted_agents import Talker

_FILES: dict[str, str | bytes] = {
    "parts_xlsx": make_xlsx({"Valves": text_rows(("valve", "pressure"), ("GV-50", "40 bar"))}),
    "talk_pptx": make_pptx(
        shape("Cover", kind="title"), shape("Penguins", kind="title") + shape("They eat krill.")
    ),
    "novel_epub": make_epub({"one": "<p>The lighthouse burned down.</p>"}, {"one": "The fire"}),
    "terms_html": "<h1>Terms</h1><h2>Bicycles</h2><p>Bicycles are rented by the hour.</p>",
    "page_htm": "<p>Our orchestra rehearses on Tuesdays.",
    "staff_json": '{"staff": [{"name": "Ada Lovelace", "extension": 4349}]}',
    "orders_jsonl": '{"order": "SO-31085", "customer": "Brewery"}\n',
    "guide_md": "---\ntitle: Museum\n---\n# Tickets\nChildren enter without tickets.",
}
_QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "parts.xlsx": ("What pressure has valve GV-50?", {"row": 2, "heading": "Valves"}),
    "talk.pptx": ("What do penguins eat?", {"page": 2, "heading": "Penguins"}),
    "novel.epub": ("What burned down? The lighthouse?", {"heading": "The fire"}),
    "terms.html": ("How are bicycles rented?", {"heading": "Terms > Bicycles"}),
    "page.htm": ("When does the orchestra rehearse?", {}),
    "staff.json": ("What is the extension of Ada Lovelace?", {"row": 1, "heading": "staff"}),
    "orders.jsonl": ("Who is the customer of order SO-31085?", {"row": 1}),
    "guide.md": ("Do children need tickets?", {"heading": "Museum > Tickets"}),
}


@pytest.mark.usefixtures("_read_in_children")
async def test_each_format_is_uploaded_read_and_found(
    librarian: Librarian, subtests: pytest.Subtests
) -> None:
    documents = {item["name"]: item for item in await librarian.add(**_FILES)}
    for name, (question, place) in _QUESTIONS.items():
        with subtests.test(name):
            document = documents[name]
            assert document["status"] == "ready", document["error"]
            best = (await librarian.search(question))[0]
            assert best["document_name"] == name
            expected = dict.fromkeys(("page", "row", "heading")) | place
            assert {key: best[key] for key in expected} == expected
            (chunk, *_) = (await librarian.chunks(document["id"]))["data"][-1:]
            assert chunk["heading"] == expected["heading"]
            answer = await librarian.client.get(
                f"{librarian.path}/documents/{document['id']}/content"
            )
            kind = parsing.kind_of(name)
            assert kind is not None
            assert answer.headers["content-type"] == parsing.MIME_TYPES[kind]
            assert answer.headers["content-disposition"].startswith("attachment")


async def test_the_answer_to_an_unknown_format_names_those_that_are_read(talk: Talker) -> None:
    path = f"/api/v1/agents/{talk.agent_id}/train"
    answer = await talk.client.http.post(path, files=[("files", ("a.exe", b"x"))])
    assert answer.status_code == 415
    formats = "PDF, DOCX, XLSX, PPTX, EPUB, HTML, MD, TXT, CSV, JSON or JSONL"
    assert formats in answer.json()["error"]["message"]
