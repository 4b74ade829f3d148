"""What other areas may call."""

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
