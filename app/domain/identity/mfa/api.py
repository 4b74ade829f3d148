"""What other areas may call."""

from .sign_in import verify_mfa
