from app.http.errors import Invalid
from app.kit import emails


def checked(field: str, text: str) -> str:
    try:
        return emails.normal(text)
    except ValueError as problem:
        raise Invalid.field(field, str(problem)) from None
