from app.kit.errors import Conflict, NotFound


class FormNotFound(NotFound, code="form_not_found"):
    """The form does not exist, or is not published."""


class FormVersionNotFound(NotFound, code="form_version_not_found"): ...


class FormFieldNotFound(NotFound, code="form_field_not_found"): ...


class InvalidFormState(Conflict, code="invalid_state"):
    """The form is in a state that does not allow this."""


class TooManyVersions(Conflict, code="too_many_versions"): ...


class FormNotPublished(Conflict, code="form_not_published"): ...


class FormClosed(Conflict, code="form_closed"): ...
