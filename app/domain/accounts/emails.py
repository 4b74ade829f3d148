from app import email_addresses
from app.kit.errors import Invalid


def validate(field: str, text: str) -> str:
    try:
        return email_addresses.normalize(text)
    except ValueError as problem:
        raise Invalid.field(field, str(problem)) from None
