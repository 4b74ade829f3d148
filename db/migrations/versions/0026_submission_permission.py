"""The permission submissions:read, and no data_tables:read for agent_user by default.

Roles that a super_admin has changed keep what they were given: submissions:read goes to roles of
developers and above that may see forms, and agent_user loses data_tables:read only if its
permissions are the defaults.
"""

from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

_SEEDED = "(SELECT value FROM instance_state WHERE key = 'seeded_permissions')"
# An old instance may not know all of them yet.
_USER_DEFAULTS = """
'{agents:chat,agents:read,approvals:decide,data_tables:read,forms:read,forms:submit,tools:read,
  workflows:read}'::text[]
"""
_REVOKE_TABLES = f"""
DELETE FROM role_grants WHERE role = 'agent_user' AND permission = 'data_tables:read'
AND (SELECT array_agg(permission::text ORDER BY permission::text)
     FROM role_grants WHERE role = 'agent_user')
  = (SELECT array_agg(known ORDER BY known) FROM json_array_elements_text({_SEEDED}::json) known
     WHERE known = ANY({_USER_DEFAULTS}))
"""
_GRANT_SUBMISSIONS = """
INSERT INTO role_grants (role, permission)
SELECT role, 'submissions:read' FROM role_grants
WHERE permission = 'forms:read' AND role IN ('super_admin', 'tenant_admin', 'agent_developer')
ON CONFLICT DO NOTHING
"""
# Otherwise the next start would grant it by default.
_MARK_SEEDED = """
UPDATE instance_state SET value = (value::jsonb || '["submissions:read"]')::text
WHERE key = 'seeded_permissions' AND value::jsonb @> '["forms:read"]'
"""
_BUMP_GRANTS = "UPDATE instance_state SET number = number + 1 WHERE key = 'grants_version'"


STATEMENTS = (_REVOKE_TABLES, _GRANT_SUBMISSIONS, _MARK_SEEDED, _BUMP_GRANTS)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    op.execute("DELETE FROM role_grants WHERE permission = 'submissions:read'")
    op.execute(
        "UPDATE instance_state SET value = (value::jsonb - 'submissions:read')::text "
        "WHERE key = 'seeded_permissions'"
    )
    op.execute(_BUMP_GRANTS)
