"""The script tag that a web site puts into its pages."""

import html
from typing import Final

_PLACEHOLDER = "YOUR_EMBED_KEY"
HINT: Final = (
    f"Replace {_PLACEHOLDER} with an embed key: create one with POST /api/v1/embed/api-keys, which "
    "shows it once, or send a key with this request to get it filled in"
)


def build(public_url: str, agent_id: str, api_key: str | None) -> str:
    """Without a key, the tag has a placeholder for it."""
    return (
        f'<script async src="{html.escape(public_url)}/embed/widget.js" '
        f'data-agent-id="{html.escape(agent_id)}" '
        f'data-api-key="{html.escape(api_key or _PLACEHOLDER)}"></script>'
    )
