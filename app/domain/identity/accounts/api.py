"""What other areas may call."""

from .account_mails import mail_notice
from .one_time_tokens import MFA, count_try, find_token, use_token
from .password import set_password
from .queries import (
    count_contacts,
    find_avatar,
    find_profile,
    lock_user,
    member_sql,
    set_avatar,
    update_profile,
)
from .service import find_email, find_unknown_ids, list_contacts
from .sessions import forget_code_shown, mark_code_shown, require_code_shown
from .sign_in import begin_session, emit_sign_in_blocked, refresh, sign_in, sign_out_by_token
from .users import (
    delete_picture,
    lock_own_user,
    lock_user_to_change,
    picture_path,
    refuse_higher_role,
    set_mfa,
)
