"""OAuth 2: requests tokens from authorization servers and renews the tokens of credentials.

When several users in several processes need a new token of one credential, one of them requests it
under a lease and the others wait for its result.
"""

import asyncio
import base64
from datetime import datetime, timedelta
from urllib.parse import quote, urlencode

import msgspec

from app.crypto.keyring import Keyring
from app.domain.platform.events import api as events
from app.jobs import background
from app.kit import clock
from app.kit.ids import new_id
from app.net.egress import Egress, EgressError
from app.net.redaction import Redactor
from db.fast import Row
from db.session import Database

from . import queries
from .decrypted import DecryptedCredential, decrypt_secrets, decrypt_values, seal_context
from .errors import TokenRefused
from .events import CredentialInvalid
from .types import OAuth2Secrets, secret_texts

# A token counts as expired this early, so that it is still valid when it arrives.
_EXPIRY_MARGIN = timedelta(seconds=30)
_LEASE_SECONDS = 30.0
_REQUEST_SECONDS = 15.0
_POLL_SECONDS = 0.05
_MAX_RESPONSE_BYTES = 256 * 1024
_MAX_TOKEN_CHARS = 16_384
_MAX_ERROR_CHARS = 80
_MAX_LIFETIME_SECONDS = 10 * 365 * 86400
_OK, _UNAUTHORIZED, _SERVER_ERROR, _TOO_MANY_REQUESTS = 200, 401, 500, 429


class TokenGrant(msgspec.Struct, frozen=True):
    """The tokens that a token endpoint issued."""

    access_token: str
    refresh_token: str | None
    expires_at: datetime | None


class _TokenResponse(msgspec.Struct):
    access_token: str = ""
    refresh_token: str | None = None
    expires_in: float | str | None = None
    error: str | None = None


async def request_token(egress: Egress, secrets: OAuth2Secrets) -> TokenGrant:
    """Requests a token by `refresh_token` if there is one, else by `client_credentials`.

    Raises TokenRefused.
    """
    form = {"grant_type": "client_credentials"}
    if secrets.refresh_token:
        form = {"grant_type": "refresh_token", "refresh_token": secrets.refresh_token}
    if secrets.scopes:
        form["scope"] = " ".join(secrets.scopes)
    client = {"client_id": secrets.client_id, "client_secret": secrets.client_secret}
    status, response = await _post(egress, secrets.token_url, form | client, None)
    if response.error == "invalid_client" or (
        status == _UNAUTHORIZED and not response.access_token
    ):
        # Some servers accept the client id and secret only in the header.
        pair = f"{quote(secrets.client_id, safe='')}:{quote(secrets.client_secret, safe='')}"
        basic = base64.b64encode(pair.encode()).decode()
        status, response = await _post(egress, secrets.token_url, form, f"Basic {basic}")
    if status != _OK or not response.access_token:
        is_temporary = status >= _SERVER_ERROR or status == _TOO_MANY_REQUESTS
        # Some servers repeat parts of the request in the error.
        redactor = Redactor(secret_texts(secrets))
        error = redactor.text(response.error or "", _MAX_ERROR_CHARS)[:_MAX_ERROR_CHARS]
        reason = f" ({error})" if error else ""
        raise TokenRefused(
            f"the token endpoint answered {status}{reason}", is_final=not is_temporary
        )
    if max(len(response.access_token), len(response.refresh_token or "")) > _MAX_TOKEN_CHARS:
        raise TokenRefused("the token endpoint issued a token that is too long", is_final=False)
    expires_at = _compute_expiry(response.expires_in)
    return TokenGrant(response.access_token, response.refresh_token, expires_at)


async def _post(
    egress: Egress, url: str, form: dict[str, str], authorization: str | None
) -> tuple[int, _TokenResponse]:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    if authorization is not None:
        headers["Authorization"] = authorization
    try:
        response = await egress.request(
            "POST",
            url,
            headers=headers,
            body=urlencode(form).encode(),
            timeout_seconds=_REQUEST_SECONDS,
            max_bytes=_MAX_RESPONSE_BYTES,
        )
    except EgressError as error:
        raise TokenRefused(
            f"the token endpoint cannot be reached: {error}", is_final=False
        ) from error
    try:
        return response.status, msgspec.json.decode(response.body, type=_TokenResponse)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return response.status, _TokenResponse()


def _compute_expiry(expires_in: float | str | None) -> datetime | None:
    try:
        seconds = float(expires_in) if expires_in is not None else None
    except ValueError:
        return None
    if seconds is None or not 0 < seconds < _MAX_LIFETIME_SECONDS:
        return None
    return clock.now() + timedelta(seconds=seconds)


def is_expired(expires_at: datetime | None) -> bool:
    return expires_at is not None and expires_at - _EXPIRY_MARGIN <= clock.now()


class TokenRefresher:
    """Renews the tokens of oauth2 credentials. One object per process."""

    def __init__(self, db: Database, keyring: Keyring, egress: Egress) -> None:
        self._db = db
        self._keyring = keyring
        self._egress = egress
        self._renewals: dict[str, asyncio.Task[OAuth2Secrets]] = {}

    async def get_fresh_secrets(
        self, credential: DecryptedCredential, *, rejected_token: str | None = None
    ) -> OAuth2Secrets:
        """Returns the secrets with a token that is neither expired nor `rejected_token`.

        Raises TokenRefused.
        """
        secrets = credential.secrets
        assert isinstance(secrets, OAuth2Secrets)  # noqa: S101  # for the type alone
        is_usable = secrets.access_token and secrets.access_token != rejected_token
        if is_usable and not is_expired(credential.token_expires_at):
            return secrets
        # The stored token may be the rejected one, newer than that of `credential`.
        stale_token = secrets.access_token if rejected_token is None else rejected_token
        return await self.renew_token(credential.tenant_id, credential.id, stale_token)

    async def renew_token(
        self, tenant_id: str, credential_id: str, stale_token: str
    ) -> OAuth2Secrets:
        """Returns the secrets with a newer token than `stale_token`.

        Concurrent callers of this process share one renewal. Raises TokenRefused.
        """
        renewal = self._renewals.get(credential_id)
        if renewal is None:
            renewal = background.start(self._renew(tenant_id, credential_id, stale_token))
            self._renewals[credential_id] = renewal
            renewal.add_done_callback(lambda _: self._renewals.pop(credential_id, None))
        return await asyncio.shield(renewal)

    async def _renew(self, tenant_id: str, credential_id: str, stale_token: str) -> OAuth2Secrets:
        """Requests a token under the lease, or waits until the holder of the lease has one."""
        deadline = asyncio.get_running_loop().time() + _LEASE_SECONDS
        holder = new_id("rfr")
        while True:
            async with self._db.tx(tenant_id) as tx:
                leased_row = await queries.claim_refresh(
                    tx, tenant_id, credential_id, holder, _LEASE_SECONDS
                )
                row = leased_row or await queries.find_secrets(tx, tenant_id, credential_id)
            if row is None:
                raise TokenRefused("the credential no longer exists", is_final=True)
            secrets = self._decrypt(tenant_id, credential_id, row)
            is_newer = secrets.access_token != stale_token and not is_expired(
                row["token_expires_at"]
            )
            if secrets.access_token and is_newer:
                if leased_row is not None:
                    await self._release(tenant_id, credential_id, holder)
                return secrets
            if leased_row is not None:
                return await self._request_and_store(
                    tenant_id, credential_id, holder, leased_row, secrets
                )
            if asyncio.get_running_loop().time() > deadline:
                raise TokenRefused("no new token arrived in time", is_final=False)
            await asyncio.sleep(_POLL_SECONDS)

    async def _request_and_store(
        self, tenant_id: str, credential_id: str, holder: str, row: Row, secrets: OAuth2Secrets
    ) -> OAuth2Secrets:
        try:
            grant = await request_token(self._egress, secrets)
        except TokenRefused as error:
            await self._handle_refusal(tenant_id, credential_id, holder, row, error)
            raise
        except BaseException:
            await asyncio.shield(self._release(tenant_id, credential_id, holder))
            raise
        values = decrypt_values(self._keyring, tenant_id, credential_id, row["secrets"])
        values["access_token"] = grant.access_token
        if grant.refresh_token:
            values["refresh_token"] = grant.refresh_token
        plaintext = msgspec.json.encode(values)
        async with self._db.tx(tenant_id) as tx:
            await queries.store_token(
                tx,
                tenant_id,
                credential_id,
                holder,
                self._keyring.seal(plaintext, seal_context(tenant_id, credential_id)),
                sorted(values),
                grant.expires_at,
                row["secrets_version"],
            )
        return msgspec.convert(values, OAuth2Secrets)

    async def _handle_refusal(
        self, tenant_id: str, credential_id: str, holder: str, row: Row, error: TokenRefused
    ) -> None:
        async with self._db.tx(tenant_id) as tx:
            await queries.release_refresh(tx, tenant_id, credential_id, holder)
            if error.is_final:
                credential = await queries.mark_invalid(
                    tx, tenant_id, credential_id, row["secrets_version"]
                )
                if credential is not None:
                    invalid = CredentialInvalid(
                        credential_id, credential["name"], "oauth2", str(error)
                    )
                    await events.emit(tx, invalid, tenant_id=tenant_id)

    async def _release(self, tenant_id: str, credential_id: str, holder: str) -> None:
        async with self._db.tx(tenant_id) as tx:
            await queries.release_refresh(tx, tenant_id, credential_id, holder)

    def _decrypt(self, tenant_id: str, credential_id: str, row: Row) -> OAuth2Secrets:
        secrets = decrypt_secrets(self._keyring, tenant_id, credential_id, "oauth2", row["secrets"])
        assert isinstance(secrets, OAuth2Secrets)  # noqa: S101  # for the type alone
        return secrets
