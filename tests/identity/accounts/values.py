"""Passwords, emails, roles and key sets that several tests use."""

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

INVALID_EMAILS: list[object] = [
    "",
    "nobody",
    "@example.com",
    "a@",
    "a@b@example.com",
    "a b@example.com",
    "a@exam ple.com",
    "a@example.com\n",
    "\na@example.com",
    "a@example.com\r\nBcc: b@example.com",
    "a@example.com, b@example.com",
    "<a@example.com>",
    "a..b@example.com",
    "x" * 65 + "@example.com",
    "a@" + "x" * 250 + ".com",
    5,
    None,
    ["a@example.com"],
]

ROLES = ["super_admin", "tenant_admin", "agent_developer", "agent_user", "viewer"]
ADMIN_ROLES, NON_ADMIN_ROLES = ROLES[:2], ROLES[2:]
ROLES_BELOW_SUPER_ADMIN = ROLES[1:]

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
