"""Secrets at rest: AES-256-GCM in two layers.

Each sealed value has a random data key, which a tenant key wraps; the tenant key is derived from a
root key. Both layers authenticate the context of the value (tenant, table, record, field, version),
so a ciphertext that is copied elsewhere does not open. Only the wrap depends on the root key's
name, so that rotation re-wraps 32 bytes and leaves the content unchanged.
"""

import base64
import os
import struct
import time
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
# How long a process may go on sealing with the previous key after a new one was added.
RELOAD_SECONDS = 1.0


class KeyProblem(ValueError):
    """The root keys are missing, too short or not readable."""


class CannotOpen(ValueError):
    """The value was sealed by other keys or for another context, or it was altered."""


class SealContext(msgspec.Struct, frozen=True):
    """The row and column that a sealed value belongs to."""

    tenant: str
    table: str
    record: str
    field: str
    version: int = 1

    @classmethod
    def of(
        cls, column: InstrumentedAttribute[Any], tenant_id: str, record_id: str
    ) -> "SealContext":
        """Returns the context of a mapped column in one row."""
        table, field = _column_names(column)
        return cls(tenant=tenant_id, table=table, record=record_id, field=field)


@cache
def _column_names(column: InstrumentedAttribute[Any]) -> tuple[str, str]:
    mapped = column.property.columns[0]
    return str(mapped.table.name), str(mapped.name)


ReadChangedKeys = Callable[[], str | None]


class Keyring:
    """Root keys by name. The first key is active: it seals; the others only open.

    `read_changed` returns the text of the keys if it has changed. The keyring calls it when a value
    names an unknown key, and before it seals, at most once in RELOAD_SECONDS, so that a rotation
    reaches running processes.
    """

    def __init__(
        self, keys: Mapping[str, bytes], read_changed: ReadChangedKeys | None = None
    ) -> None:
        self._keys = _validate_keys(keys)
        self._read_changed = read_changed
        self._reload_at = time.monotonic() + RELOAD_SECONDS
        self._active = next(iter(self._keys))
        self.derive = lru_cache(maxsize=4096)(self._derive)

    @classmethod
    def parse(cls, text: str, read_changed: ReadChangedKeys | None = None) -> "Keyring":
        """Parses `kid:base64,kid:base64`."""
        return cls(cls._parse_keys(text), read_changed)

    @staticmethod
    def _parse_keys(text: str) -> dict[str, bytes]:
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
    def active(self) -> str:
        """The name of the key that seals."""
        if self._read_changed is not None and time.monotonic() >= self._reload_at:
            self._reload()
        return self._active

    @property
    def kids(self) -> list[str]:
        return list(self._keys)

    def snapshot(self) -> "Keyring":
        """Returns a keyring with the same keys that never reads them again."""
        return Keyring(self._keys)

    def fingerprints(self) -> list[str]:
        """Tell instances apart in public, that of the active key first: processes with the same
        root keys belong together.
        """
        kids = [self.active, *(kid for kid in self.kids if kid != self.active)]
        return [self.derive(kid, "fingerprint", "")[:8].hex() for kid in kids]

    def _derive(self, kid: str, purpose: str, subject: str) -> bytes:
        """Returns the key for one purpose and subject; the root key itself encrypts nothing."""
        if kid not in self._keys:
            self._reload()
        if kid not in self._keys:
            raise CannotOpen(f"root key {kid!r} is not among the configured ones")
        info = _join(b"parley", purpose.encode(), subject.encode())
        return HKDF(SHA256(), _KEY_BYTES, salt=None, info=info).derive(self._keys[kid])

    def _reload(self) -> None:
        """Replaces the keys if their text has changed and is valid."""
        self._reload_at = time.monotonic() + RELOAD_SECONDS
        text = self._read_changed() if self._read_changed is not None else None
        if text is None:
            return
        try:
            self._keys = _validate_keys(self._parse_keys(text))
        except KeyProblem:
            return
        self._active = next(iter(self._keys))

    def seal(self, plaintext: bytes, context: SealContext) -> bytes:
        data_key, nonce = os.urandom(_KEY_BYTES), os.urandom(_NONCE_BYTES)
        content = AESGCM(data_key).encrypt(nonce, plaintext, _associated_data(b"data", context))
        return self._wrap(data_key, self.active, context) + nonce + content

    def open(self, sealed: bytes, context: SealContext) -> bytes:
        kid, wrapped, rest = _split(sealed)
        data_key = self._unwrap(wrapped, kid, context)
        try:
            return AESGCM(data_key).decrypt(
                rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], _associated_data(b"data", context)
            )
        except InvalidTag as error:
            raise CannotOpen("the content cannot be decrypted here") from error

    def rewrap(self, sealed: bytes, context: SealContext) -> bytes:
        """Returns the value wrapped by the active key, unchanged when that key wraps it already."""
        active = self.active
        kid, wrapped, rest = _split(sealed)
        if kid == active:
            return sealed
        return self._wrap(self._unwrap(wrapped, kid, context), active, context) + rest

    def _wrap(self, data_key: bytes, kid: str, context: SealContext) -> bytes:
        """Returns the header and the wrapped data key."""
        nonce = os.urandom(_NONCE_BYTES)
        key = self.derive(kid, "tenant", context.tenant)
        associated_data = _associated_data(b"wrap", context, kid.encode())
        return header(kid) + nonce + AESGCM(key).encrypt(nonce, data_key, associated_data)

    def _unwrap(self, wrapped: bytes, kid: str, context: SealContext) -> bytes:
        key = self.derive(kid, "tenant", context.tenant)
        nonce, encrypted_key = wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:]
        try:
            return AESGCM(key).decrypt(
                nonce, encrypted_key, _associated_data(b"wrap", context, kid.encode())
            )
        except InvalidTag as error:
            raise CannotOpen("the data key cannot be decrypted here") from error


def _validate_keys(keys: Mapping[str, bytes]) -> dict[str, bytes]:
    if not keys:
        raise KeyProblem("no root key is configured")
    for kid, key in keys.items():
        if len(key) < _KEY_BYTES:
            raise KeyProblem(f"root key {kid!r} has {len(key)} bytes; it needs {_KEY_BYTES}")
    return dict(keys)


def kid_of(sealed: bytes) -> str:
    return _split(sealed)[0]


def header(kid: str) -> bytes:
    """Returns the first bytes of every value that this key wraps, and of no other."""
    name = kid.encode()
    return _FORMAT + bytes([len(name)]) + name


def _split(sealed: bytes) -> tuple[str, bytes, bytes]:
    if len(sealed) < 2 or sealed[:1] != _FORMAT:  # noqa: PLR2004
        raise CannotOpen("not a sealed value of a known format")
    start = 2 + sealed[1]
    end = start + _WRAPPED_BYTES
    if len(sealed) < end + _NONCE_BYTES + 16:
        raise CannotOpen("the sealed value is truncated")
    try:
        kid = sealed[2:start].decode()
    except UnicodeDecodeError as error:
        raise CannotOpen("the sealed value names no key") from error
    return kid, sealed[start:end], sealed[end:]


@lru_cache(maxsize=4096)
def _associated_data(layer: bytes, context: SealContext, *extra: bytes) -> bytes:
    return _join(
        _FORMAT,
        layer,
        context.tenant.encode(),
        context.table.encode(),
        context.record.encode(),
        context.field.encode(),
        str(context.version).encode(),
        *extra,
    )


def _join(*parts: bytes) -> bytes:
    """Joins the parts with length prefixes, so that different lists give different bytes."""
    return b"".join(struct.pack(">I", len(part)) + part for part in parts)
