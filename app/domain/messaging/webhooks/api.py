"""What other areas may call."""

from .service import find
