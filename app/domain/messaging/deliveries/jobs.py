"""Webhooks as a kind of endpoint: when a delivery is sent, and when an endpoint is disabled."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from app.domain.area import Areas
from app.domain.messaging.outbox.api import Attempt, Outbox, OutboxEgress, Outcome, Schedule
from app.domain.platform.events import api as events
from app.kit import logs
from app.services import Services
from db.ledger import WorkRow
from db.session import Tx

from . import queries, requests, sending
from .endpoints import origin_of
from .events import WebhookDisabled
from .requests import DeliveryRequest
from .sending import GONE

log = logs.get("deliveries")

FAILING_SECONDS: Final = 5 * 24 * 3600
# The delivery can still be redelivered.
_INACTIVE = Attempt(error="the webhook was not active when its turn came", is_cancelled=True)


class WebhookOutbox(Outbox[DeliveryRequest]):
    span_kind = "delivery"
    sql = queries.OUTBOX_SQL
    request_type = DeliveryRequest

    async def load(self, tx: Tx, delivery_ids: list[str]) -> Mapping[str, DeliveryRequest]:
        return await requests.load(tx, delivery_ids)

    def schedule(self, services: Services, work: WorkRow, request: DeliveryRequest) -> Schedule:
        """A redelivery is new work, whose attempts count from the first."""
        del request
        delays = services.settings.webhook_retry_delays
        return Schedule(work.attempt, delays, work.max_attempts, max(delays))

    async def attempt(
        self, services: Services, request: DeliveryRequest, *, is_awaited: bool
    ) -> Attempt:
        if not request.active and not is_awaited:
            return _INACTIVE
        return await sending.send(services.get(OutboxEgress), services.keyring, request)

    def columns(self, request: DeliveryRequest, attempt: Attempt) -> dict[str, object]:
        return {
            "url": request.url,
            "at": attempt.at,
            "code": attempt.response_code,
            "body": attempt.response_body,
            "healthy": _is_healthy(request, attempt),
        }

    async def on_recorded(
        self, services: Services, tx: Tx, outcomes: Sequence[Outcome[DeliveryRequest]]
    ) -> None:
        """Disables endpoints that are gone, or that fail for days."""
        failed = [item for item in outcomes if _is_healthy(item.request, item.attempt) is False]
        if not failed:
            return
        ids = [item.request.endpoint_id for item in failed]
        failing = set(await queries.find_failing(await tx.raw(), ids, FAILING_SECONDS))
        for item in sorted(failed, key=lambda item: item.request.endpoint_id):
            if item.attempt.response_code == GONE or item.request.endpoint_id in failing:
                with events.chain_of(item.work):
                    await _disable(services, tx, item)


def _is_healthy(request: DeliveryRequest, attempt: Attempt) -> bool | None:
    """Returns None for a test, which says nothing about the endpoint's health."""
    return None if request.is_test or attempt.is_cancelled else attempt.error is None


async def _disable(services: Services, tx: Tx, outcome: Outcome[DeliveryRequest]) -> None:
    tenant_id, webhook_id = outcome.request.tenant_id, outcome.request.endpoint_id
    is_gone = outcome.attempt.response_code == GONE
    reason: Literal["gone", "failing"] = "gone" if is_gone else "failing"
    webhook = await queries.disable(tx, tenant_id, webhook_id, reason)
    if webhook is None:
        return
    await services.get(Areas).on_webhook_disabled(tx, tenant_id, webhook_id)
    log.warning("webhook disabled", webhook_id=webhook_id, reason=reason)
    url = origin_of(webhook["url"])
    owner_id, subscription_id = webhook["created_by"], webhook["subscription_id"]
    disabled = WebhookDisabled(webhook_id, url, reason, subscription_id, owner_id)
    await events.emit(tx, disabled, tenant_id=tenant_id)


WEBHOOKS: Final = WebhookOutbox()


async def on_retry_delivery(_services: Services, tx: Tx, work: WorkRow) -> bool:
    """False for a delivery that was redelivered since."""
    return await queries.wait_again(tx, work.tenant_id or "", work.ref_id or "", work.id)
