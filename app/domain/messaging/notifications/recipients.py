"""Who a message goes to."""

import msgspec


class Recipients(msgspec.Struct, frozen=True, omit_defaults=True):
    """Users by their ids, the users with a role, or the recipients of a channel: one of them."""

    user_ids: list[str] | None = None
    role: str | None = None
    channel_id: str | None = None
