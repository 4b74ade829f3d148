"""Configures the mapped classes when it is imported."""

from sqlalchemy.orm import configure_mappers

import db.models  # noqa: F401

configure_mappers()
