"""What other areas may call."""

from app.domain.messaging.deliveries.endpoints import (
    change_headers,
    check_move,
    check_url,
    masked_headers,
    new_endpoint,
    origin_of,
    renew_secret,
    reset_health,
)
from app.domain.messaging.deliveries.queries import DELIVER, EndpointRef
from app.domain.messaging.deliveries.requests import encode_body, new_request, sign_all
from app.domain.messaging.deliveries.service import (
    Leases,
    NewDelivery,
    create,
    endpoints_for,
    find,
    list_page,
    not_found,
    redeliver,
    wait_for,
)
from app.domain.messaging.deliveries.signing import sign
