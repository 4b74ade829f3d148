"""How much visitors may upload: one of them must not take the place of the others."""

from typing import Final

import msgspec

from app.domain.platform.storage.errors import QuotaExceeded
from app.kit.concurrency import ConcurrencyLimit

from .errors import TooManyUploads

MEGABYTE: Final = 1024 * 1024
_MAX_OF_ADDRESS: Final = 3
# Files of one form that no submission has, and those of them from one address.
MAX_WAITING: Final = 5000
_MAX_WAITING_OF_ADDRESS: Final = 50
# Those of all forms of a tenant; their sizes are added up for each upload.
MAX_WAITING_OF_TENANT: Final = 20_000
# The part of the storage quota for files that no submission has, and the part of that for one
# address. An address whose files do not wait may send one of any size.
_WAITING_SHARE: Final = 0.1
_ADDRESS_SHARE: Final = 0.25


class SenderLimit(ConcurrencyLimit):
    """Limits how many files arrive from one address at the same time. One per process."""

    def __init__(self, max_uploads: int = _MAX_OF_ADDRESS) -> None:
        super().__init__(max_uploads)

    def build_refusal(self, max_requests: int) -> TooManyUploads:
        return TooManyUploads(
            f"Your address may upload {max_requests} files at a time; "
            "try again when one of them has arrived",
            headers={"Retry-After": "5"},
        )


class WaitingFiles(msgspec.Struct, frozen=True):
    """Files without a submission: their number in a form and their bytes in a tenant, up to limits;
    those of one address among them; and what the address uploaded to the form within a day,
    submitted or not. A quota of 0 is none.
    """

    count: int
    count_of_address: int
    tenant_count: int
    tenant_bytes: int
    tenant_bytes_of_address: int
    day_bytes_of_address: int
    quota_bytes: int

    def check(self, file_bytes: int, max_mb_per_day: int) -> None:
        """Raises TooManyUploads, or QuotaExceeded for a file that never fits. The messages say
        nothing of what the tenant stores or may store.
        """
        if self.day_bytes_of_address + file_bytes > max_mb_per_day * MEGABYTE:
            raise _build_refusal(
                "Your address has uploaded as much to this form as it may in a day"
            )
        has_many = (
            self.count >= MAX_WAITING
            or self.count_of_address >= _MAX_WAITING_OF_ADDRESS
            or self.tenant_count >= MAX_WAITING_OF_TENANT
        )
        if has_many or self._is_share_used_up(file_bytes):
            raise _build_refusal("Too many files wait for their submissions")

    def _is_share_used_up(self, file_bytes: int) -> bool:
        share = self.quota_bytes * _WAITING_SHARE
        if not share:
            return False
        if file_bytes > share:
            raise QuotaExceeded("The file takes more than this tenant has for files that wait")
        is_first = self.tenant_bytes_of_address == 0
        own_bytes = self.tenant_bytes_of_address + file_bytes
        return self.tenant_bytes + file_bytes > share or (
            own_bytes > share * _ADDRESS_SHARE and not is_first
        )


def _build_refusal(reason: str) -> TooManyUploads:
    return TooManyUploads(f"{reason}; try again later", headers={"Retry-After": "3600"})
