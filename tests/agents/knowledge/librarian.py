"""An agent with documents: uploads them, waits until they are read, and searches them."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from tests.scripted_agents import Talker
from tests.world import Client

HANDBOOK = """# Opening hours

The shop opens at nine in the morning. On Sundays it opens at eleven.

# Returns

Goods can be returned within thirty days with the receipt.
"""


class Librarian(msgspec.Struct):
    """A user and one of their agents."""

    client: Client
    agent_id: str

    @property
    def path(self) -> str:
        return f"/api/v1/agents/{self.agent_id}"

    async def upload(self, **files: str | bytes) -> dict[str, Any]:
        """Uploads files by their names, with `_` for the dot before the ending."""
        parts = [
            ("files", (".".join(name.rsplit("_", 1)), content)) for name, content in files.items()
        ]
        answer = await self.client.http.post(f"{self.path}/train", files=parts)
        assert answer.status_code == 202, answer.text
        accepted: dict[str, Any] = answer.json()
        return accepted

    async def document(self, document_id: str) -> dict[str, Any]:
        answer = await self.client.get(f"{self.path}/documents/{document_id}")
        assert answer.status_code == 200, answer.text
        document: dict[str, Any] = answer.json()
        return document

    async def wait_for(self, document_id: str) -> dict[str, Any]:
        """Returns the document once it is ready or failed, which takes longer than most work."""
        async with asyncio.timeout(70):
            while True:
                document = await self.document(document_id)
                if document["status"] in {"ready", "failed"}:
                    return document
                await asyncio.sleep(0.06)

    async def add(self, **files: str | bytes) -> list[dict[str, Any]]:
        """Uploads files and returns their documents once they are read."""
        accepted = await self.upload(**files)
        return [await self.wait_for(document["id"]) for document in accepted["documents"]]

    async def chunks(self, document_id: str, **query: int) -> dict[str, Any]:
        answer = await self.client.get(f"{self.path}/documents/{document_id}/chunks", params=query)
        assert answer.status_code == 200, answer.text
        page: dict[str, Any] = answer.json()
        return page

    async def search(self, query: str, limit: int = 5) -> list[dict[str, Any]]:
        body = {"query": query, "limit": limit}
        answer = await self.client.post(f"{self.path}/search", body)
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["data"]
        return found


def librarian_of(talk: Talker) -> Librarian:
    return Librarian(talk.client, talk.agent_id)


def folder_size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
