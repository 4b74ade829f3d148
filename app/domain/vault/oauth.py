"""OAuth 2: asking an authorization server for tokens, and keeping a credential's token fresh.

However many use a credential whose token has run out, in however many processes, one of them asks
and the others wait for what it gets.
"""

import asyncio
import base64
from datetime import datetime, timedelta
from urllib.parse import quote, urlencode

import msgspec

from app.domain.events import service as events
from app.domain.vault import queries
from app.domain.vault.decrypted import DecryptedCredential, decrypt_secrets, seal_context
from app.domain.vault.errors import TokenRefused
from app.domain.vault.events import CredentialInvalid
from app.domain.vault.types import OAuth2Secrets, secret_texts
from app.kit import clock
from app.kit.crypto import Keyring
from app.kit.egress import Egress, EgressError
from app.kit.ids import new_id
from app.kit.redaction import Redactor
from db.fast import Row
from db.session import Database

# Used up a little before its end, so that it still holds when it arrives.
_MARGIN = timedelta(seconds=30)
_HOLD_SECONDS = 30.0
_ASK_SECONDS = 15.0
_PAUSE_SECONDS = 0.05
_ANSWER_BYTES = 256 * 1024
_TOKEN_CHARS = 16_384
_LONGEST_LIFE = 10 * 365 * 86400
_OK, _UNAUTHORIZED, _SERVER_ERROR, _TOO_MANY = 200, 401, 500, 429


class TokenGrant(msgspec.Struct, frozen=True):
    """What a token endpoint gave."""

    access_token: str
    refresh_token: str | None
    expires_at: datetime | None


class _Answer(msgspec.Struct):
    access_token: str = ""
    refresh_token: str | None = None
    expires_in: float | str | None = None
    error: str | None = None


async def request_token(egress: Egress, secrets: OAuth2Secrets) -> TokenGrant:
    """A refresh where there is a refresh token, else a token for the client itself."""
    form = {"grant_type": "client_credentials"}
    if secrets.refresh_token:
        form = {"grant_type": "refresh_token", "refresh_token": secrets.refresh_token}
    if secrets.scopes:
        form["scope"] = " ".join(secrets.scopes)
    client = {"client_id": secrets.client_id, "client_secret": secrets.client_secret}
    status, answer = await _post(egress, secrets.token_url, form | client, None)
    if answer.error == "invalid_client" or (status == _UNAUTHORIZED and not answer.access_token):
        # Some servers take the client's name and secret in the header only.
        pair = f"{quote(secrets.client_id, safe='')}:{quote(secrets.client_secret, safe='')}"
        basic = base64.b64encode(pair.encode()).decode()
        status, answer = await _post(egress, secrets.token_url, form, f"Basic {basic}")
    if status != _OK or not answer.access_token:
        passing = status >= _SERVER_ERROR or status == _TOO_MANY
        # Some servers repeat what they were sent.
        said = Redactor(secret_texts(secrets)).text(answer.error or "")
        why = f" ({said[:80]})" if said else ""
        raise TokenRefused(f"the token endpoint answered {status}{why}", final=not passing)
    if max(len(answer.access_token), len(answer.refresh_token or "")) > _TOKEN_CHARS:
        raise TokenRefused("the token endpoint gave a token that is too long", final=False)
    return TokenGrant(answer.access_token, answer.refresh_token, _end_of(answer.expires_in))


async def _post(
    egress: Egress, url: str, form: dict[str, str], authorization: str | None
) -> tuple[int, _Answer]:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    if authorization is not None:
        headers["Authorization"] = authorization
    try:
        answer = await egress.request(
            "POST",
            url,
            headers=headers,
            body=urlencode(form).encode(),
            timeout_seconds=_ASK_SECONDS,
            max_bytes=_ANSWER_BYTES,
        )
    except EgressError as error:
        raise TokenRefused(f"the token endpoint cannot be asked: {error}", final=False) from error
    try:
        return answer.status, msgspec.json.decode(answer.body, type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return answer.status, _Answer()


def _end_of(expires_in: float | str | None) -> datetime | None:
    try:
        seconds = float(expires_in) if expires_in is not None else None
    except ValueError:
        return None
    if seconds is None or not 0 < seconds < _LONGEST_LIFE:
        return None
    return clock.now() + timedelta(seconds=seconds)


def is_expired(expires_at: datetime | None) -> bool:
    return expires_at is not None and expires_at - _MARGIN <= clock.now()


class TokenRefresher:
    """Fresh tokens of oauth2 credentials. One per process."""

    def __init__(self, db: Database, keyring: Keyring, egress: Egress) -> None:
        self._db = db
        self._keyring = keyring
        self._egress = egress
        self._running: dict[str, asyncio.Task[OAuth2Secrets]] = {}

    async def fresh(
        self, opened: DecryptedCredential, *, refused: str | None = None
    ) -> OAuth2Secrets:
        """The secrets with a token that should work. `refused` is one that did not."""
        secrets = opened.secrets
        assert isinstance(secrets, OAuth2Secrets)  # noqa: S101  # for the type alone
        usable = secrets.access_token and secrets.access_token != refused
        if usable and not is_expired(opened.token_expires_at):
            return secrets
        return await self.renew(opened.tenant_id, opened.id, secrets.access_token)

    async def renew(self, tenant_id: str, credential_id: str, stale: str) -> OAuth2Secrets:
        """A newer token than the stale one, asked for by one at a time."""
        running = self._running.get(credential_id)
        if running is None:
            running = asyncio.create_task(self._renewed(tenant_id, credential_id, stale))
            self._running[credential_id] = running
            running.add_done_callback(lambda _: self._running.pop(credential_id, None))
        return await asyncio.shield(running)

    async def _renewed(self, tenant_id: str, credential_id: str, stale: str) -> OAuth2Secrets:
        deadline = asyncio.get_running_loop().time() + _HOLD_SECONDS
        holder = new_id("rfr")
        while True:
            async with self._db.tx(tenant_id) as tx:
                row = await queries.claim_refresh(
                    tx, tenant_id, credential_id, holder, _HOLD_SECONDS
                )
                seen = row or await queries.current(tx, tenant_id, credential_id)
            if seen is None:
                raise TokenRefused("the credential does not exist any more", final=True)
            secrets = self._opened(tenant_id, credential_id, seen)
            newer = secrets.access_token != stale and not is_expired(seen["token_expires_at"])
            if secrets.access_token and newer:
                if row is not None:
                    await self._let_go(tenant_id, credential_id, holder)
                return secrets
            if row is not None:
                return await self._asked(tenant_id, credential_id, holder, row, secrets)
            if asyncio.get_running_loop().time() > deadline:
                raise TokenRefused("nobody got a new token in time", final=False)
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _asked(
        self, tenant_id: str, credential_id: str, holder: str, row: Row, secrets: OAuth2Secrets
    ) -> OAuth2Secrets:
        try:
            grant = await request_token(self._egress, secrets)
        except TokenRefused as error:
            await self._refused(tenant_id, credential_id, holder, row, error)
            raise
        except BaseException:
            await asyncio.shield(self._let_go(tenant_id, credential_id, holder))
            raise
        fresh = msgspec.structs.replace(
            secrets,
            access_token=grant.access_token,
            refresh_token=grant.refresh_token or secrets.refresh_token,
        )
        packed = msgspec.json.encode(fresh)
        async with self._db.tx(tenant_id) as tx:
            await queries.store_token(
                tx,
                tenant_id,
                credential_id,
                holder,
                self._keyring.seal(packed, seal_context(tenant_id, credential_id)),
                sorted(msgspec.to_builtins(fresh)),
                grant.expires_at,
                row["secrets_version"],
            )
        return fresh

    async def _refused(
        self, tenant_id: str, credential_id: str, holder: str, row: Row, error: TokenRefused
    ) -> None:
        async with self._db.tx(tenant_id) as tx:
            await queries.let_go(tx, tenant_id, credential_id, holder)
            if error.final:
                gone = await queries.invalidate(
                    tx, tenant_id, credential_id, row["secrets_version"]
                )
                if gone is not None:
                    invalid = CredentialInvalid(credential_id, gone["name"], "oauth2", str(error))
                    await events.emit(tx, invalid, tenant_id=tenant_id)

    async def _let_go(self, tenant_id: str, credential_id: str, holder: str) -> None:
        async with self._db.tx(tenant_id) as tx:
            await queries.let_go(tx, tenant_id, credential_id, holder)

    def _opened(self, tenant_id: str, credential_id: str, row: Row) -> OAuth2Secrets:
        found = decrypt_secrets(self._keyring, tenant_id, credential_id, "oauth2", row["secrets"])
        assert isinstance(found, OAuth2Secrets)  # noqa: S101
        return found
