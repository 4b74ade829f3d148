"""What other areas may call."""

from .endpoints import (
    change_headers,
    check_move,
    check_url,
    masked_headers,
    new_endpoint,
    origin_of,
    renew_secret,
    reset_health,
)
from .queries import DELIVER, EndpointRef
from .requests import encode_body, new_request, sign_all
from .service import (
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
from .signing import sign
