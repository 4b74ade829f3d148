"""Secrets at rest: AES-256-GCM in two layers.

Each sealed value has a random data key of its own, and that key is wrapped by a tenant key derived
from a root key. Both layers authenticate where the value belongs (tenant, table, record, field,
version), so a ciphertext that is moved elsewhere does not open. The root key's name is part of the
wrap alone, so that rotation re-wraps 32 bytes and never touches the content.
"""

import base64
import os
import struct
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from sqlalchemy.orm import InstrumentedAttribute

_FORMAT = b"\x01"
_KEY_BYTES = 32
_NONCE_BYTES = 12
_WRAPPED_BYTES = _NONCE_BYTES + _KEY_BYTES + 16


class KeyProblem(ValueError):
    """The root keys are missing, too short or not readable."""


class CannotOpen(ValueError):
    """Not sealed by these keys for this place, or altered since."""


class SealContext(msgspec.Struct, frozen=True):
    """Where a sealed value belongs."""

    tenant: str
    table: str
    record: str
    field: str
    version: int = 1

    @classmethod
    def of(
        cls, column: InstrumentedAttribute[Any], tenant_id: str, record_id: str
    ) -> "SealContext":
        """The context of a mapped column's value in one row."""
        table, field = _names_of(column)
        return cls(tenant=tenant_id, table=table, record=record_id, field=field)


@cache
def _names_of(column: InstrumentedAttribute[Any]) -> tuple[str, str]:
    mapped = column.property.columns[0]
    return str(mapped.table.name), str(mapped.name)


Newer = Callable[[], str | None]


class Keyring:
    """Root keys by name. The first is active: it seals; the others only open.

    `newer` gives the keys' text again if it has changed since; it is asked when a value names a key
    that is not known, so that a rotation reaches processes that are already running.
    """

    def __init__(self, keys: Mapping[str, bytes], newer: Newer | None = None) -> None:
        self._keys = _checked(keys)
        self._newer = newer
        self.active = next(iter(self._keys))
        self.derive = lru_cache(maxsize=4096)(self._derive)

    @classmethod
    def parse(cls, text: str, newer: Newer | None = None) -> "Keyring":
        """Read `kid:base64,kid:base64`."""
        return cls(cls._read(text), newer)

    @staticmethod
    def _read(text: str) -> dict[str, bytes]:
        keys: dict[str, bytes] = {}
        for part in filter(None, (item.strip() for item in text.split(","))):
            kid, colon, encoded = part.partition(":")
            if not colon or not kid or len(kid.encode()) > 255 or kid in keys:  # noqa: PLR2004
                raise KeyProblem("each root key is written kid:base64, each kid once")
            try:
                keys[kid] = base64.b64decode(encoded, validate=True)
            except ValueError as error:
                raise KeyProblem(f"root key {kid!r} is not base64") from error
        return keys

    @staticmethod
    def generate(kid: str) -> str:
        return f"{kid}:{base64.b64encode(os.urandom(_KEY_BYTES)).decode()}"

    @property
    def kids(self) -> list[str]:
        return list(self._keys)

    def _derive(self, kid: str, purpose: str, subject: str) -> bytes:
        """A key for one purpose and subject; the root key itself encrypts nothing."""
        if kid not in self._keys:
            self._renew()
        if kid not in self._keys:
            raise CannotOpen(f"root key {kid!r} is not among the configured ones")
        info = _joined(b"parley", purpose.encode(), subject.encode())
        return HKDF(SHA256(), _KEY_BYTES, salt=None, info=info).derive(self._keys[kid])

    def _renew(self) -> None:
        """Take newer keys if there are any, and if they are whole; else keep what we have."""
        text = self._newer() if self._newer is not None else None
        if text is None:
            return
        try:
            self._keys = _checked(self._read(text))
        except KeyProblem:
            return
        self.active = next(iter(self._keys))

    def seal(self, plaintext: bytes, place: SealContext) -> bytes:
        data_key, nonce = os.urandom(_KEY_BYTES), os.urandom(_NONCE_BYTES)
        content = AESGCM(data_key).encrypt(nonce, plaintext, _bound(b"data", place))
        return _header(self.active) + self._wrap(data_key, self.active, place) + nonce + content

    def open(self, sealed: bytes, place: SealContext) -> bytes:
        kid, wrapped, rest = _split(sealed)
        data_key = self._unwrap(wrapped, kid, place)
        try:
            return AESGCM(data_key).decrypt(
                rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], _bound(b"data", place)
            )
        except InvalidTag as error:
            raise CannotOpen("the content does not open here") from error

    def rewrap(self, sealed: bytes, place: SealContext) -> bytes:
        """The same value under the active key; unchanged when it already is."""
        kid, wrapped, rest = _split(sealed)
        if kid == self.active:
            return sealed
        data_key = self._unwrap(wrapped, kid, place)
        return _header(self.active) + self._wrap(data_key, self.active, place) + rest

    def _wrap(self, data_key: bytes, kid: str, place: SealContext) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        key = self.derive(kid, "tenant", place.tenant)
        return nonce + AESGCM(key).encrypt(nonce, data_key, _bound(b"wrap", place, kid.encode()))

    def _unwrap(self, wrapped: bytes, kid: str, place: SealContext) -> bytes:
        key = self.derive(kid, "tenant", place.tenant)
        nonce, box = wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:]
        try:
            return AESGCM(key).decrypt(nonce, box, _bound(b"wrap", place, kid.encode()))
        except InvalidTag as error:
            raise CannotOpen("the data key does not open here") from error


def _checked(keys: Mapping[str, bytes]) -> dict[str, bytes]:
    if not keys:
        raise KeyProblem("no root key is given")
    for kid, key in keys.items():
        if len(key) < _KEY_BYTES:
            raise KeyProblem(f"root key {kid!r} has {len(key)} bytes; it needs {_KEY_BYTES}")
    return dict(keys)


def kid_of(sealed: bytes) -> str:
    return _split(sealed)[0]


def _header(kid: str) -> bytes:
    name = kid.encode()
    return _FORMAT + bytes([len(name)]) + name


def _split(sealed: bytes) -> tuple[str, bytes, bytes]:
    if len(sealed) < 2 or sealed[:1] != _FORMAT:  # noqa: PLR2004
        raise CannotOpen("not a sealed value of a known format")
    start = 2 + sealed[1]
    end = start + _WRAPPED_BYTES
    if len(sealed) < end + _NONCE_BYTES + 16:
        raise CannotOpen("the sealed value is cut short")
    try:
        kid = sealed[2:start].decode()
    except UnicodeDecodeError as error:
        raise CannotOpen("the sealed value names no key") from error
    return kid, sealed[start:end], sealed[end:]


@lru_cache(maxsize=4096)
def _bound(layer: bytes, place: SealContext, *more: bytes) -> bytes:
    return _joined(
        _FORMAT,
        layer,
        place.tenant.encode(),
        place.table.encode(),
        place.record.encode(),
        place.field.encode(),
        str(place.version).encode(),
        *more,
    )


def _joined(*parts: bytes) -> bytes:
    """Length-prefixed, so that no two lists of parts give the same bytes."""
    return b"".join(struct.pack(">I", len(part)) + part for part in parts)
