import pytest

from tests.openapi.document import Document
from tests.world import Client


@pytest.fixture
async def document(anonymous: Client) -> Document:
    answer = await anonymous.get("/openapi.json")
    assert answer.status_code == 200
    document: Document = answer.json()
    return document
