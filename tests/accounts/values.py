"""Passwords, roles and key sets that several tests of accounts use."""

NEW_PASSWORD = "Battery9Staple"
WRONG_PASSWORD = "Wrong7Horse"
WEAK_PASSWORDS = [
    "",
    "Short7s",
    "lowercase7only",
    "UPPERCASE7ONLY",
    "NoNumberAtAll",
    "Aa1" + "x" * 126,
]
COMMON_PASSWORDS = ["Password1", "qWERTY123", "Passw0rd"]

ROLES = ["super_admin", "tenant_admin", "agent_developer", "agent_user", "viewer"]
NON_ADMIN_ROLES = ["agent_developer", "agent_user", "viewer"]

USER_KEYS = {
    "id",
    "email",
    "first_name",
    "last_name",
    "role",
    "tenant_id",
    "email_verified",
    "mfa_enabled",
    "status",
    "last_login_at",
    "created_at",
    "updated_at",
}
REGISTERED_KEYS = {
    "id",
    "email",
    "first_name",
    "last_name",
    "role",
    "email_verified",
    "message",
}
PAIR_KEYS = {"access_token", "refresh_token", "token_type", "expires_in"}
