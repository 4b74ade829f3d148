"""Addresses of submissions and of their files, for those who may read them."""

from collections.abc import Mapping
from typing import Any

from app.domain.forms.definition.api import FormDefinition
from app.services import Services


def build_submission_url(services: Services, form_id: str, submission_id: str) -> str:
    return f"{_build_form_url(services, form_id)}/submissions/{submission_id}"


def build_files_url(services: Services, form_id: str) -> str:
    """Returns what the addresses of the form's files begin with."""
    return f"{_build_form_url(services, form_id)}/files/"


def _build_form_url(services: Services, form_id: str) -> str:
    return f"{services.settings.public_url}/api/v1/forms/{form_id}"


def link_pictures(
    definition: FormDefinition, answers: Mapping[str, Any], files_url: str
) -> dict[str, Any]:
    """Returns the answers with the addresses of pictures in place of their ids. A picture that was
    stored as an answer stays as it is.
    """
    return {
        field_id: f"{files_url}{value}"
        if (field := definition.by_id.get(field_id)) is not None
        and field.type.has_picture
        and not field.type.is_inline(value)
        else value
        for field_id, value in answers.items()
    }
