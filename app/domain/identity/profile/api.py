"""What other areas may call."""

from .service import build_view
