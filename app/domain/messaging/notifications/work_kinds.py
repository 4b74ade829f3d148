"""The kinds of work of this area."""

from typing import Final

from app.jobs.work import WorkKind

# How many attempts one delivery has, and the seconds before each of them.
RETRY_DELAYS: Final = (0.0, 1.0, 5.0)
# Attempts that ended without an outcome, because a worker was killed, do not use up the tries.
_SPARE_ATTEMPTS = 7

# Turns the recipients of a message into rows and deliveries.
DISPATCH: Final = WorkKind("notifications.dispatch", "deliveries", timeout_seconds=300)
# Makes one attempt to send a message through a channel, which is its lane.
SEND: Final = WorkKind(
    "notifications.send",
    "deliveries",
    timeout_seconds=60,
    retry_delays=(5.0,) * (len(RETRY_DELAYS) + _SPARE_ATTEMPTS - 1),
    in_bulk=True,
)
# Sends what was collected for one user.
SEND_DIGEST: Final = WorkKind("notifications.digest", "deliveries")
