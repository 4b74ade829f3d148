"""An agent with sources: adds them, waits until they are read, and looks at its documents."""

from typing import Any

from tests.agents.knowledge.librarian import Librarian
from tests.assertions import wait_until

_BUSY = {"pending", "syncing"}


class Curator(Librarian):
    @property
    def sources(self) -> str:
        return f"{self.path}/sources"

    async def create(self, type_: str, config: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """Adds a source without waiting for its first sync."""
        body = {"name": "Help", "type": type_, "config": config, "schedule": "manual", **fields}
        answer = await self.client.post(self.sources, body)
        assert answer.status_code == 201, answer.text
        source: dict[str, Any] = answer.json()
        return source

    async def add_source(self, type_: str, config: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """Adds a source and returns it after its first sync."""
        source = await self.create(type_, config, **fields)
        return await self.wait_for_sync(source["id"])

    async def source(self, source_id: str) -> dict[str, Any]:
        answer = await self.client.get(f"{self.sources}/{source_id}")
        assert answer.status_code == 200, answer.text
        source: dict[str, Any] = answer.json()
        return source

    async def wait_for_sync(self, source_id: str) -> dict[str, Any]:
        async def find_settled() -> dict[str, Any] | None:
            source = await self.source(source_id)
            return None if source["status"] in _BUSY else source

        source = await wait_until(find_settled)
        assert source is not None
        return source

    async def wait_for_count(self, source_id: str, name: str, expected: int) -> None:
        """Waits until the last sync has found so many."""

        async def is_expected() -> bool:
            source = await self.source(source_id)
            return source["status"] not in _BUSY and source["last_sync"][name] == expected

        await wait_until(is_expected)

    async def wait_for_failure(self, source_id: str) -> None:
        async def has_failed() -> bool:
            return (await self.source(source_id))["status"] in {"retrying", "failed"}

        await wait_until(has_failed)

    async def sync(self, source_id: str) -> dict[str, Any]:
        answer = await self.client.post(f"{self.sources}/{source_id}/sync")
        assert answer.status_code == 202, answer.text
        return await self.wait_for_sync(source_id)

    async def decide(self, source_id: str, decision: str) -> dict[str, Any]:
        answer = await self.client.post(f"{self.sources}/{source_id}/changes/{decision}")
        assert answer.status_code in {200, 202}, answer.text
        return await self.wait_for_sync(source_id)

    async def changes(self, source_id: str) -> list[tuple[str, str]]:
        """Returns type and name of the changes that wait."""
        answer = await self.client.get(f"{self.sources}/{source_id}/changes?per_page=100")
        assert answer.status_code == 200, answer.text
        return sorted((item["change"], item["name"]) for item in answer.json()["data"])

    async def documents(self, **filters: str) -> list[dict[str, Any]]:
        """Returns the documents once all of them are read, by their names."""
        query = {"per_page": 100, "sort": "name", **filters}

        async def list_read() -> list[list[dict[str, Any]]]:
            answer = await self.client.get(f"{self.path}/documents", params=query)
            assert answer.status_code == 200, answer.text
            documents = answer.json()["data"]
            is_read = all(item["status"] in {"ready", "failed"} for item in documents)
            return [documents] if is_read else []

        (documents,) = await wait_until(list_read)
        return documents

    async def search(self, query: str, limit: int = 5) -> list[dict[str, Any]]:
        """Searches once all documents are read."""
        await self.documents()
        return await super().search(query, limit)

    async def names(self, **filters: str) -> list[str]:
        return [document["name"] for document in await self.documents(**filters)]
