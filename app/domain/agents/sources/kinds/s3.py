"""The files of a bucket, at Amazon or any server that speaks S3's protocol."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar
from urllib.parse import quote

import msgspec
from msgspec import Meta
from yarl import URL

from app.domain.agents.knowledge.api import kind_of
from app.domain.agents.sources import content, xml_lists
from app.domain.agents.sources.aws_signature import AwsKey, sign_get
from app.domain.agents.sources.content import Content
from app.domain.agents.sources.failures import DocumentSkipped
from app.domain.agents.sources.web import NOTHING_KNOWN, Page, Validators
from app.kit import clock
from app.kit.validation import VISIBLE, describe_pattern

from .protocol import Address, Item, SourceKind, SourceType

_BUCKET = r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]\Z"
_REGION = r"^[a-z0-9-]{1,40}\Z"
describe_pattern(_BUCKET, "must be the name of a bucket")
describe_pattern(_REGION, "must be the name of a region")
_MAX_PAGES = 20
_UNRESERVED = "-_.~"

Secret = Annotated[str, Meta(min_length=1, max_length=200, pattern=VISIBLE)]


class S3Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    endpoint: Address
    bucket: Annotated[str, Meta(pattern=_BUCKET)]
    prefix: Annotated[str, Meta(max_length=500)] = ""
    region: Annotated[str, Meta(pattern=_REGION)] = "us-east-1"


class S3Secrets(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    access_key_id: Secret
    secret_access_key: Secret


class S3Source(SourceKind):
    """A bucket without secrets is a public one."""

    name: ClassVar[SourceType] = "s3"
    config_type = S3Config
    secrets_type = S3Secrets
    follows_robots: ClassVar[bool] = False

    @staticmethod
    def address(config: Any) -> tuple[str, str]:
        return "endpoint", config.endpoint

    async def list_items(self) -> Sequence[Item]:
        items: list[Item] = []
        token = ""
        for _ in range(_MAX_PAGES):
            page = await xml_lists.read_keys((await self._get(self._bucket, token)).body)
            items += [
                Item(self._name_of(entry.key), f"/{entry.key}", version=entry.etag or None)
                for entry in page.objects
                if kind_of(entry.key) is not None
            ]
            token = page.next_token
            if not token:
                break
        return items

    async def read(self, item: Item, known: Validators = NOTHING_KNOWN) -> Content | None:
        del known
        address = f"{self._bucket}{_quote(item.path)}"
        page = await self._get(address, max_bytes=self._turn.max_document_bytes)
        kind = kind_of(item.path) or content.find_kind(page.content_type, item.url)
        title = content.find_title(page.body) if kind == "html" else ""
        return Content(page.body, kind, title, page.validators.etag)

    @property
    def _bucket(self) -> str:
        config = self._turn.config
        return f"{config.endpoint.rstrip('/')}/{config.bucket}"

    def _name_of(self, key: str) -> str:
        return f"s3://{self._turn.config.bucket}/{_quote(key)}"

    async def _get(
        self, address: str, token: str | None = None, *, max_bytes: int = xml_lists.MAX_BYTES
    ) -> Page:
        """With a token, "" for the first, one page of the list of keys."""
        query = "" if token is None else f"?{self._list_query(token)}"
        url = URL(f"{address}{query}", encoded=True)
        page = await self._turn.web.get_signed(url, lambda: self._sign(url), max_bytes)
        if page is None:
            raise DocumentSkipped("answered with status 304")
        return page

    def _list_query(self, token: str) -> str:
        names = {"list-type": "2", "max-keys": "1000", "prefix": self._turn.config.prefix}
        if token:
            names["continuation-token"] = token
        return "&".join(
            f"{name}={quote(value, safe=_UNRESERVED)}" for name, value in sorted(names.items())
        )

    def _sign(self, url: URL) -> Mapping[str, str]:
        secrets: S3Secrets | None = self._turn.secrets
        if secrets is None:
            return {}
        key = AwsKey(secrets.access_key_id, secrets.secret_access_key, self._turn.config.region)
        return sign_get(url, key, clock.now())


def _quote(key: str) -> str:
    return quote(key, safe=f"/{_UNRESERVED}")
