"""What other areas may call."""

from . import rate_limits
from .queries import list_with_user_counts
from .rate_limits import Visit, VisitorLimit, charge_visitors, keep_charges
from .service import get, get_default_id
