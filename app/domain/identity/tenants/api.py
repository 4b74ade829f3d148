"""What other areas may call."""

from app.domain.identity.tenants import rate_limits
from app.domain.identity.tenants.queries import list_with_user_counts
from app.domain.identity.tenants.rate_limits import (
    Visit,
    VisitorLimit,
    charge_visitors,
    keep_charges,
)
from app.domain.identity.tenants.service import get, get_default_id
