"""What of a form is shown to whom."""

from collections.abc import Iterable

import msgspec

from app.security.principal import Principal

from .schemas import FormNotifications, FormSummary, FormView

READ_SUBMISSIONS = "submissions:read"


def hide_counts(principal: Principal, forms: Iterable[FormSummary]) -> None:
    if not principal.may(READ_SUBMISSIONS):
        for form in forms:
            form.submission_count = None


def hide_internals(principal: Principal, form: FormView) -> FormView:
    """Hides the figures from callers who may not read submissions, and the address that is notified
    from those who may not change the form.
    """
    if not principal.may(READ_SUBMISSIONS):
        form.stats = None
    if not principal.may("forms:write"):
        form.settings = msgspec.structs.replace(form.settings, notifications=FormNotifications())
        form.unconfirmed_emails = []
    return form
