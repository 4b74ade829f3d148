"""The path of a form from its author to a visitor and back."""

from tests.forms.api import (
    EMAIL,
    FILE,
    PATH,
    PUBLIC,
    TEXT,
    get_submission,
    problems,
    request_form,
    send,
    submit,
    upload,
)
from tests.world import Client


async def test_a_visitor_fills_in_a_form_and_its_author_reads_the_answers(
    developer: Client, anonymous: Client
) -> None:
    form = await request_form(developer, TEXT, EMAIL, FILE)
    shown = (await anonymous.get(f"{PUBLIC}/{form['slug']}")).json()["data"]
    assert [field["id"] for field in shown["fields"]] == ["name", "email", "file"]
    assert problems(await send(anonymous, form, {"email": "x"})) == {
        "name": "is required",
        "email": "must be an e-mail address, like name@example.com",
    }
    file_id = (await upload(anonymous, form, b"hello")).json()["data"]["file_id"]
    submission_id = await submit(anonymous, form, {"name": "Ada", "file": file_id})
    stored = await get_submission(developer, form, submission_id)
    assert stored["data"] == {"name": "Ada", "file": file_id}
    assert stored["status"] == "received"
    content = await developer.get(f"{PATH}/{form['id']}/files/{file_id}")
    assert content.content == b"hello"
