"""What other areas may call."""

from . import espeak, moonshine
