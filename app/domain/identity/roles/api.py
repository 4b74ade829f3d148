"""What other areas may call."""

from .queries import list_granted
