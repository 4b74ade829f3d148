"""A small server of S3's protocol: lists keys page by page, and checks each signature."""

import hashlib
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl, quote, unquote
from xml.sax.saxutils import escape

from aiohttp import web

from tests.peer import answering

KEY_ID, SECRET, REGION = "AKIDEXAMPLE", "example-secret", "eu-central-1"
_PAGE = 2


class BucketServer:
    """`objects` are those of the bucket `docs`, by key. `is_public` needs no signature."""

    def __init__(self) -> None:
        self.url = ""
        self.is_public = False
        self.objects: dict[str, bytes] = {}
        self.read: list[str] = []

    @property
    def config(self) -> dict[str, str]:
        return {"endpoint": self.url, "bucket": "docs", "region": REGION}

    @property
    def secrets(self) -> dict[str, str]:
        return {"access_key_id": KEY_ID, "secret_access_key": SECRET}

    async def respond(self, request: web.Request) -> web.StreamResponse:
        path, _, query = request.raw_path.partition("?")
        if not self.is_public and not _is_signed(request, path, query):
            return web.Response(
                status=403, text="<Error><Code>SignatureDoesNotMatch</Code></Error>"
            )
        key = unquote(path).removeprefix("/docs").removeprefix("/")
        if not key:
            return self._list(dict(parse_qsl(query, keep_blank_values=True)))
        if key not in self.objects:
            return web.Response(status=404)
        self.read.append(key)
        return web.Response(
            body=self.objects[key],
            headers={"ETag": _etag(self.objects[key]), "Content-Type": "binary/octet-stream"},
        )

    def _list(self, query: dict[str, str]) -> web.Response:
        keys = sorted(key for key in self.objects if key.startswith(query["prefix"]))
        start = int(query.get("continuation-token", "0/+=").partition("/")[0])
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><ETag>{escape(_etag(self.objects[key]))}</ETag>"
            f"<Size>{len(self.objects[key])}</Size></Contents>"
            for key in keys[start : start + _PAGE]
        )
        end = start + _PAGE
        more = f"<NextContinuationToken>{end}/+=</NextContinuationToken>" if end < len(keys) else ""
        namespace = "http://s3.amazonaws.com/doc/2006-03-01/"
        body = f'<ListBucketResult xmlns="{namespace}">{rows}{more}</ListBucketResult>'
        return web.Response(text=body, content_type="application/xml")


def _etag(body: bytes) -> str:
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'


def _is_signed(request: web.Request, path: str, query: str) -> bool:
    """Computes the signature by the steps of the specification, from what has arrived."""
    fields = dict(
        part.strip().split("=", 1)
        for part in request.headers.get("Authorization", "x y=").partition(" ")[2].split(",")
    )
    if not fields.get("Credential", "").startswith(f"{KEY_ID}/"):
        return False
    date, region, service, _ = fields["Credential"].split("/")[1:]
    pairs = sorted(
        (quote(name, safe="-_.~"), quote(value, safe="-_.~"))
        for name, value in parse_qsl(query, keep_blank_values=True)
    )
    signed = fields["SignedHeaders"].split(";")
    canonical = "\n".join(
        [
            *("GET", quote(unquote(path), safe="/-_.~")),
            "&".join(f"{name}={value}" for name, value in pairs),
            *(f"{name}:{request.headers[name].strip()}" for name in signed),
            *("", fields["SignedHeaders"], request.headers["x-amz-content-sha256"]),
        ]
    )
    scope = f"{date}/{region}/{service}/aws4_request"
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{request.headers['x-amz-date']}\n{scope}\n{hashed}"
    key = f"AWS4{SECRET}".encode()
    for part in (date, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return (
        region == REGION
        and fields["Signature"] == hmac.new(key, text.encode(), "sha256").hexdigest()
    )


@asynccontextmanager
async def open_bucket() -> AsyncIterator[BucketServer]:
    bucket = BucketServer()
    async with answering(bucket.respond) as url:
        bucket.url = url
        yield bucket
