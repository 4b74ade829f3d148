"""The screens of the console: one row for each address, record page, tab and dialog with an address
of its own. `{agent}` and the like stand for ids of `Shop`.
"""

from typing import Final

import msgspec


class Screen(msgspec.Struct, frozen=True):
    name: str
    path: str
    # A text that it shows once it has loaded.
    shows: str
    # What a list shows in a new tenant; empty for what is not a list.
    empty: str = ""

    @property
    def tab(self) -> str | None:
        """The key of its tab, if it is one."""
        _, is_tab, key = self.path.partition("?tab=")
        return key.partition("&")[0] if is_tab else None


SCREENS: Final = (
    Screen("home", "/", "What failed lately", "Nothing has failed"),
    Screen("agents", "/agents", "Shop assistant", "Create your first agent"),
    Screen("agents-new", "/agents?new=1", "New agent"),
    Screen("agent-behaviour", "/agents/{agent}?tab=behaviour", "Instructions"),
    Screen("agent-knowledge", "/agents/{agent}?tab=knowledge", "Documents"),
    Screen("agent-tools", "/agents/{agent}?tab=tools", "Find orders"),
    Screen("agent-sub-agents", "/agents/{agent}?tab=subAgents", "Agent 1"),
    Screen("agent-embedding", "/agents/{agent}?tab=embedding", "Our site"),
    Screen("agent-voice", "/agents/{agent}?tab=voice", "Our site"),
    Screen("agent-logging", "/agents/{agent}?tab=logging", "Logging"),
    Screen("agent-versions", "/agents/{agent}?tab=versions", "Live"),
    Screen("agent-history", "/agents/{agent}?tab=history", "Instructions"),
    Screen("knowledge", "/knowledge", "1 failed", "There is no agent yet"),
    Screen("knowledge-documents", "/knowledge/{agent}?tab=documents", "Handbook"),
    Screen("knowledge-sources", "/knowledge/{agent}?tab=sources", "Help"),
    Screen("knowledge-test", "/knowledge/{agent}?tab=test", "Question"),
    Screen("knowledge-settings", "/knowledge/{agent}?tab=settings", "Passages in a turn"),
    Screen("document-passages", "/knowledge/{agent}/{document}?tab=passages", "Opening hours"),
    Screen("document-about", "/knowledge/{agent}/{document}?tab=about", "Tags"),
    Screen("tools", "/tools", "Find orders", "Give your agents something to do"),
    Screen("tools-new", "/tools?new=1", "What should the tool do?"),
    Screen("tool-new-function", "/tools/new/function", "Code"),
    Screen("tool-new-rest", "/tools/new/rest_api", "Configuration"),
    Screen("tool-new-webhook", "/tools/new/webhook", "URL"),
    Screen("tool-new-database", "/tools/new/database", "Configuration"),
    Screen("tool-new-script", "/tools/new/script", "Configuration"),
    Screen("tool-new-custom", "/tools/new/custom", "Configuration"),
    Screen("tools-import", "/tools/import", "Or its text, in JSON or YAML"),
    Screen("tool-settings", "/tools/{tool}?tab=settings", "Configuration"),
    Screen("tool-run", "/tools/{tool}?tab=run", "Customer"),
    Screen("tool-runs", "/tools/{tool}?tab=executions", "Completed"),
    Screen("tool-statistics", "/tools/{tool}?tab=statistics", "Runs by day"),
    Screen("tool-history", "/tools/{tool}?tab=history", "Created"),
    Screen("credentials", "/credentials?tab=vault", "Ticket system", "Keep secrets in one place"),
    Screen("credentials-audit", "/credentials?tab=audit", "Access granted", "Nothing has happened"),
    Screen("credentials-new", "/credentials?new=1", "New credential"),
    Screen("credential-overview", "/credentials/{credential}?tab=overview", "Details"),
    Screen("credential-access", "/credentials/{credential}?tab=access", "Hook"),
    Screen("credential-audit", "/credentials/{credential}?tab=audit", "Access granted"),
    Screen("credential-history", "/credentials/{credential}?tab=history", "Created"),
    Screen("conversations", "/conversations", "Opening hours", "No conversations yet"),
    Screen("conversation", "/conversations/{conversation}", "model_unavailable"),
    Screen("usage-time", "/usage?tab=time&group=model", "Figures as a table", "Nothing was used"),
    Screen("usage-limits", "/usage?tab=limits", "Rows of data tables"),
    Screen("people-users", "/people?tab=users", "Owner", "Test User"),
    Screen("people-invitations", "/people?tab=invitations", "Open", "No invitations"),
    Screen("people-roles", "/people?tab=roles", "agents:delete"),
    Screen("people-tenants", "/people?tab=tenants&search=Acme", "Acme"),
    Screen("user", "/people/{user}", "Last sign-in"),
    Screen("tenant", "/people/tenants/{tenant}", "Requests per minute"),
    Screen("me-profile", "/people/me?tab=profile", "Time zone"),
    Screen("me-security", "/people/me?tab=security", "Current password"),
    Screen("me-sessions", "/people/me?tab=sessions", "This session"),
    Screen("settings-keys", "/settings?tab=keys", "Ours", "Add the key of a model provider"),
    Screen("settings-new-key", "/settings?new=key", "Add a provider key"),
    Screen("settings-models", "/settings?tab=models", "US dollars", "No model can be used yet"),
    Screen("settings-service", "/settings?tab=service", "Import", "Let your programs call the API"),
    Screen("settings-work", "/settings?tab=work", "Run a tool", "No work has failed"),
    Screen("settings-work-item", "/settings?tab=work&work={work}", "Execute the tool again"),
    Screen("settings-instance", "/settings?tab=instance", "max_body_mb"),
    Screen("missing", "/nothing/is/here", "This screen does not exist"),
)
# Those that need no session.
OPEN_SCREENS: Final = (
    Screen("sign-in", "/sign-in", "Forgot your password?"),
    Screen("register", "/register", "invites you"),
    Screen("verify-email", "/verify-email", "Verify my address"),
    Screen("confirm-recipient", "/confirm-recipient", "This link is not valid"),
    Screen("forgot-password", "/forgot-password", "Send the mail"),
    Screen("reset-password", "/reset-password", "Change my password"),
)
