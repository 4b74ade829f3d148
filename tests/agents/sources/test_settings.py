"""The settings of sources: what is refused, changed and kept secret."""

from typing import Any

from app.domain.agents.sources import queries
from app.services import Services
from tests.agents.sources.bucket_server import open_bucket
from tests.agents.sources.curator import Curator
from tests.agents.sources.web_site import WebSite
from tests.assertions import refused
from tests.database import fetch_rows
from tests.failing_cases import FailingCases

_S3 = {"endpoint": "https://s3.example.com", "bucket": "docs"}
_KEYS = {"access_key_id": "AKID", "secret_access_key": "secret-0123456789"}
_ARCHIVE = {"url": "https://example.com/main.tar.gz"}


async def test_invalid_settings_are_refused(curator: Curator, subtests: FailingCases) -> None:
    wrong: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("config.url", {"type": "page", "config": {}}, {}),
        ("config.url", {"type": "page", "config": {"url": "ftp://example.com/"}}, {}),
        ("config.url", {"type": "page", "config": {"url": "https://10.0.0.1/"}}, {}),
        ("config.url", {"type": "page", "config": {"url": "https://a:b@example.com/"}}, {}),
        ("config.url", {"type": "page", "config": {"url": "https://example.com/#a"}}, {}),
        ("config.url", {"type": "page", "config": {"url": f"https://a.com/{'a' * 2000}"}}, {}),
        ("config.urls", {"type": "page", "config": {"url": "https://example.com", "urls": 1}}, {}),
        ("config.content", {"type": "feed", "config": {**_ARCHIVE, "content": "all"}}, {}),
        ("config.bucket", {"type": "s3", "config": {**_S3, "bucket": "../a"}}, {}),
        ("config.endpoint", {"type": "s3", "config": {**_S3, "endpoint": "https://[::1]/"}}, {}),
        ("secrets.access_key_id", {"type": "s3", "config": _S3, "secrets": {"a": "b"}}, {}),
        ("secrets", {"type": "page", "config": _ARCHIVE, "secrets": {"token": "a"}}, {}),
        ("config.header", {"type": "git_archive", "config": {**_ARCHIVE, "header": "Host"}}, {}),
        ("config.header", {"type": "git_archive", "config": {**_ARCHIVE, "header": "A\nB"}}, {}),
        ("config.folder", {"type": "git_archive", "config": {**_ARCHIVE, "folder": "../a"}}, {}),
        (
            "config.url",
            {
                "type": "git_archive",
                "config": {"url": "http://example.com/a.zip"},
                "secrets": {"token": "a"},
            },
            {},
        ),
        ("max_documents", {"type": "page", "config": _ARCHIVE}, {"max_documents": 1001}),
        ("include", {"type": "page", "config": _ARCHIVE}, {"include": ["*"] * 21}),
        ("schedule", {"type": "page", "config": _ARCHIVE}, {"schedule": "minutely"}),
        ("document.tags", {"type": "page", "config": _ARCHIVE}, {"document": {"tags": 1}}),
    ]
    for field, body, more in wrong:
        with subtests.test(field, body=body):
            answer = await curator.client.post(curator.sources, {"name": "A", **body, **more})
            assert field in refused(answer, 422, "validation_error")["details"]


async def test_secrets_are_never_shown(curator: Curator, services: Services) -> None:
    async with open_bucket() as bucket:
        source = await curator.add_source("s3", bucket.config, secrets=bucket.secrets)
        secret = bucket.secrets["secret_access_key"]
        answers = [
            await curator.client.get(curator.sources),
            await curator.client.get(f"{curator.sources}/{source['id']}"),
            await curator.client.http.patch(
                f"{curator.sources}/{source['id']}", json={"name": "Renamed"}
            ),
        ]
        assert [secret in answer.text for answer in answers] == [False] * 3
        (row,) = await fetch_rows(
            services, "SELECT secrets, config FROM document_sources WHERE id = $1", source["id"]
        )
        assert secret.encode() not in row["secrets"]
        assert (await curator.sync(source["id"]))["status"] == "ready"


async def test_secrets_are_not_sent_to_another_server(curator: Curator) -> None:
    source = await curator.create("s3", _S3, secrets=_KEYS)
    path = f"{curator.sources}/{source['id']}"
    moved = {**_S3, "endpoint": "https://attacker.example.com"}
    answer = await curator.client.http.patch(path, json={"config": moved})
    assert set(refused(answer, 422, "validation_error")["details"]) == {"secrets"}
    body: dict[str, Any] = {"config": moved, "secrets": _KEYS}
    assert (await curator.client.http.patch(path, json=body)).status_code == 200
    same = {**moved, "prefix": "help/"}
    assert (await curator.client.http.patch(path, json={"config": same})).status_code == 200


async def test_a_change_of_the_documents_reaches_all_of_them(
    curator: Curator, site: WebSite
) -> None:
    site.article("/a", "A", "Apples are red.")
    source = await curator.add_source(
        "page", {"url": f"{site.url}/a"}, document={"visibility": "internal", "tags": ["fruit"]}
    )
    (document,) = await curator.documents()
    assert (document["visibility"], document["tags"]) == ("internal", ["fruit"])
    answer = await curator.client.http.patch(
        f"{curator.sources}/{source['id']}", json={"document": {"tags": ["food"]}}
    )
    assert answer.json()["document"] == {"visibility": "internal", "tags": ["food"]}
    (document,) = await curator.documents()
    assert (document["visibility"], document["tags"]) == ("internal", ["food"])

    # What somebody set for one document stays when its page changes.
    path = f"{curator.path}/documents/{document['id']}"
    await curator.client.http.patch(path, json={"visibility": "public"})
    site.article("/a", "A", "Apples are green.")
    await curator.sync(source["id"])
    (document,) = await curator.documents()
    assert (document["visibility"], document["tags"]) == ("public", ["food"])

    # Also when it is another document, since it has another format.
    site.show("/a", "# Apples\n\nApples are blue.", "text/markdown")
    await curator.sync(source["id"])
    (other,) = await curator.documents()
    assert (other["id"] == document["id"], other["name"]) == (False, "a.md")
    assert (other["visibility"], other["tags"]) == ("public", ["food"])


async def test_a_source_that_is_unknown_or_of_another_agent_is_not_found(
    curator: Curator, site: WebSite
) -> None:
    source = await curator.create("page", {"url": f"{site.url}/a"})
    other = (await curator.client.post("/api/v1/agents", _AGENT)).json()["id"]
    for path in (
        f"{curator.sources}/src_unknown",
        f"/api/v1/agents/{other}/sources/{source['id']}",
    ):
        for method, suffix in (
            *(("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/sync")),
            *(("GET", "/changes"), ("POST", "/changes/apply"), ("POST", "/changes/discard")),
        ):
            body: dict[str, Any] | None = {} if method == "PATCH" else None
            answer = await curator.client.http.request(method, f"{path}{suffix}", json=body)
            refused(answer, 404, "source_not_found")


_AGENT = {"name": "Other", "primary_model": "local/smollm2", "system_prompt": "Help."}


async def test_an_agent_has_a_limited_number_of_sources(
    curator: Curator, site: WebSite, monkeypatch: Any
) -> None:
    monkeypatch.setattr(queries, "MAX_SOURCES", 1)
    await curator.create("page", {"url": f"{site.url}/a"})
    body = {"name": "B", "type": "page", "config": {"url": f"{site.url}/b"}}
    refused(await curator.client.post(curator.sources, body), 409, "conflict")
