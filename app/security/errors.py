class TokenInvalid(ValueError):
    """A JWT is refused. The message goes to the caller and contains nothing about keys."""
