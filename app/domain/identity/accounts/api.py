"""What other areas may call."""

from app.domain.identity.accounts.account_mails import mail_notice
from app.domain.identity.accounts.one_time_tokens import MFA, count_try, find_token, use_token
from app.domain.identity.accounts.queries import (
    count_contacts,
    find_avatar,
    find_profile,
    lock_user,
    member_sql,
    set_avatar,
    update_profile,
)
from app.domain.identity.accounts.service import (
    find_email,
    find_unknown_ids,
    list_contacts,
)
from app.domain.identity.accounts.sessions import (
    forget_code_shown,
    mark_code_shown,
    require_code_shown,
)
from app.domain.identity.accounts.sign_in import begin_session, emit_sign_in_blocked
from app.domain.identity.accounts.users import (
    delete_picture,
    lock_own_user,
    lock_user_to_change,
    picture_path,
    set_mfa,
)
