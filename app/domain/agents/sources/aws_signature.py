"""Signs requests to S3 and to servers that speak its protocol (AWS Signature Version 4)."""

import hashlib
import hmac
from datetime import datetime
from typing import Final

import msgspec
from yarl import URL

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_EMPTY_HASH: Final = hashlib.sha256(b"").hexdigest()


class AwsKey(msgspec.Struct, frozen=True):
    id: str
    secret: str
    region: str
    service: str = "s3"


def sign_get(url: URL, key: AwsKey, now: datetime) -> dict[str, str]:
    """Returns the headers of a GET request without a body. Path and query of the address are as
    they are sent; the names in the query are in their order.
    """
    moment = now.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{moment[:8]}/{key.region}/{key.service}/aws4_request"
    headers = {
        "host": _host(url),
        "x-amz-content-sha256": _EMPTY_HASH,
        "x-amz-date": moment,
    }
    names = ";".join(headers)
    request = "\n".join(
        (
            "GET",
            url.raw_path,
            url.raw_query_string,
            *(f"{name}:{value}" for name, value in headers.items()),
            "",
            names,
            _EMPTY_HASH,
        )
    )
    hashed = hashlib.sha256(request.encode()).hexdigest()
    text = f"{_ALGORITHM}\n{moment}\n{scope}\n{hashed}"
    signature = hmac.new(_derive(key, moment[:8]), text.encode(), hashlib.sha256).hexdigest()
    credential = f"Credential={key.id}/{scope}"
    return {
        "x-amz-content-sha256": _EMPTY_HASH,
        "x-amz-date": moment,
        "Authorization": f"{_ALGORITHM} {credential}, SignedHeaders={names}, Signature={signature}",
    }


def _host(url: URL) -> str:
    return f"{url.raw_host}" if url.is_default_port() else f"{url.raw_host}:{url.port}"


def _derive(key: AwsKey, date: str) -> bytes:
    derived = f"AWS4{key.secret}".encode()
    for part in (date, key.region, key.service, "aws4_request"):
        derived = hmac.new(derived, part.encode(), hashlib.sha256).digest()
    return derived
