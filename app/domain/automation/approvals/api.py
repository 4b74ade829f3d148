"""What other areas may call."""

from .details import MAX_DETAILS, MAX_NAME_CHARS
from .service import (
    MAX_MESSAGE_CHARS,
    MAX_TIMEOUT_SECONDS,
    MAX_TITLE_CHARS,
    MAX_USERS,
    NewApproval,
    cancel,
    find_role_problems,
    find_user_problems,
    list_deciders,
    request,
    require_decider,
)
