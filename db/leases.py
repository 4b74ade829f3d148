"""Work that is leased to its creator from the start, which runs it without a claim."""

from typing import NamedTuple


class Lease(NamedTuple):
    """A lease for work that is created with it: its creator runs it."""

    token: str
    seconds: float


def columns_sql(token: str, seconds: str) -> dict[str, str]:
    """Returns columns for `insert_sql`: rows whose token is not NULL are leased from the start."""
    return {
        "state": f"CASE WHEN {token} IS NULL THEN 'pending' ELSE 'leased' END",
        "lease_token": token,
        "lease_until": f"CASE WHEN {token} IS NOT NULL THEN now() + {seconds} * interval '1 s' END",
        "attempt": f"CASE WHEN {token} IS NULL THEN 0 ELSE 1 END",
        "started_at": f"CASE WHEN {token} IS NOT NULL THEN now() END",
    }
