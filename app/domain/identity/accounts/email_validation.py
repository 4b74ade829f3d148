from app.kit import email_addresses
from app.kit.errors import Invalid


def validate_email(field: str, text: str) -> str:
    """Returns the normalized address. Raises Invalid for `field` when mail cannot be sent to it."""
    try:
        return email_addresses.normalize(text)
    except ValueError as problem:
        raise Invalid.field(field, str(problem)) from None
