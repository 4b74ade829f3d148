"""Buckets as sources: keys page by page, signatures, and objects that change."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from yarl import URL

from app.domain.agents.sources.aws_signature import AwsKey, sign_get
from tests.agents.sources.bucket_server import BucketServer, open_bucket
from tests.agents.sources.curator import Curator
from tests.model_server import Reply
from tests.scripted_agents import Talker


@pytest.fixture
async def bucket() -> AsyncIterator[BucketServer]:
    async with open_bucket() as bucket:
        bucket.objects = {
            "help/opening hours.md": b"# Hours\n\nThe shop opens at nine.",
            "help/returns+refunds.txt": b"Goods can be returned within thirty days.",
            "help/deep/mills~.html": b"<title>Mills</title><p>A mill weighs two kilograms.</p>",
            "help/logo.png": b"\x89PNG",
            "help/folder/": b"",
            "private/salaries.txt": b"Nobody should read this.",
        }
        yield bucket


async def test_the_objects_under_a_prefix_become_documents(
    curator: Curator, bucket: BucketServer
) -> None:
    source = await curator.add_source(
        "s3", {**bucket.config, "prefix": "help/"}, secrets=bucket.secrets
    )
    assert (source["error"], source["has_secrets"]) == (None, True)
    assert source["config"] == {**bucket.config, "prefix": "help/"}
    names = ["Mills.html", "help - opening hours.md", "help - returns+refunds.txt"]
    assert sorted(await curator.names()) == names
    assert "nine" in (await curator.search("When does the shop open?"))[0]["content"]

    bucket.read.clear()
    bucket.objects["help/opening hours.md"] = b"# Hours\n\nThe shop opens at ten."
    del bucket.objects["help/deep/mills~.html"]
    source = await curator.sync(source["id"])
    assert bucket.read == ["help/opening hours.md"]
    counts = {name: source["last_sync"][name] for name in ("added", "changed", "removed")}
    assert counts == {"added": 0, "changed": 1, "removed": 1}
    assert "ten" in (await curator.search("When does the shop open?"))[0]["content"]


async def test_readers_of_answers_do_not_learn_where_a_bucket_is(
    talk: Talker, curator: Curator, bucket: BucketServer
) -> None:
    config = {**bucket.config, "prefix": "help/opening"}
    await curator.add_source("s3", config, secrets=bucket.secrets)
    (document,) = await curator.documents()
    assert document["source_url"] == "s3://docs/help/opening%20hours.md"
    talk.script(Reply(texts=["At nine [1]."]))
    reply = await talk.say("When does the shop open?")
    assert reply["sources"][0]["document_name"] == document["name"]
    assert "url" not in reply["sources"][0]["metadata"]


async def test_a_public_bucket_needs_no_secrets(curator: Curator, bucket: BucketServer) -> None:
    source = await curator.add_source("s3", bucket.config)
    assert source["status"] == "failed"
    assert source["error"].endswith("answered with status 403")
    bucket.is_public = True
    source = await curator.sync(source["id"])
    assert (source["status"], source["document_count"]) == ("ready", 4)


def test_the_signature_is_that_of_the_documentation() -> None:
    """The example "GET Bucket (List Objects)" of Amazon's description of the algorithm."""
    key = AwsKey("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1")
    url = URL("https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J", encoded=True)
    headers = sign_get(url, key, datetime(2013, 5, 24, tzinfo=UTC))
    assert headers["Authorization"].endswith(
        "Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
    )
