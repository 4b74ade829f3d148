"""Rows that MFA stores."""

from app.services import Services
from tests.identity.accounts.records import fetch_value
from tests.world import Client


async def count_mfa_rows(services: Services, client: Client) -> int:
    """Returns the number of devices and recovery codes stored for the user."""
    sql = """
    SELECT (SELECT count(*) FROM mfa_devices WHERE user_id = $1)
         + (SELECT count(*) FROM recovery_codes WHERE user_id = $1)
    """
    count: int = await fetch_value(services, sql, client.user_id)
    return count
