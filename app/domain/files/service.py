"""Stored files, and what other areas may do with them."""

from app.domain.files import queries

__all__ = ["find_unknown_ids"]

# Returns those of the ids that are no files of this tenant.
find_unknown_ids = queries.find_unknown_ids
