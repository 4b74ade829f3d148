"""The error codes of the document: their texts, and the operations that answer with them."""

from typing import Any

import pytest
from litestar import Litestar

from app.http import openapi_codes
from app.http.openapi_errors import list_classes
from app.http.route_options import list_handlers
from app.kit.errors import ApiError
from tests.openapi.document import Document, list_operations


@pytest.fixture
def codes(document: Document) -> dict[str, dict[str, Any]]:
    return {entry["code"]: entry for entry in document["x-error-codes"]}


@pytest.fixture
def operations(document: Document) -> dict[str, dict[str, Any]]:
    return {operation["operationId"]: operation for _, _, operation in list_operations(document)}


def test_every_code_says_what_it_means_and_what_to_do(codes: dict[str, dict[str, Any]]) -> None:
    assert codes.keys() == {kind.code for kind in list_classes()}
    for code, entry in codes.items():
        assert entry["statuses"], code
        assert entry["meaning"].endswith("."), code
        assert entry["action"].endswith("."), code


def test_no_text_is_for_a_code_that_does_not_exist(codes: dict[str, dict[str, Any]]) -> None:
    texts = openapi_codes.load_texts()
    assert texts.keys() - codes.keys() == set()


def test_a_new_code_without_a_text_is_named() -> None:
    with pytest.raises(LookupError, match="brand_new"):
        openapi_codes.describe_code("brand_new", {409})


def test_operations_list_codes_of_the_functions_that_they_call(
    operations: dict[str, dict[str, Any]],
) -> None:
    expected = {
        "delete_tenant": {"tenant_is_default", "tenant_not_empty", "tenant_not_found"},
        "get_agent": {"agent_not_found"},
        "chat_stream": {"agent_archived", "conversation_busy", "provider_error"},
        "upload_form_file": {"form_closed", "too_many_uploads", "quota_exceeded"},
        "create_agent": {"idempotency_mismatch", "validation_error"},
    }
    for name, codes in expected.items():
        assert codes - _list_codes(operations[name]) == set(), name
    assert "agent_not_found" not in _list_codes(operations["delete_tenant"])
    assert "idempotency_mismatch" not in _list_codes(operations["get_agent"])


def _list_codes(operation: dict[str, Any]) -> set[str]:
    return set().union(*operation["x-error-codes"].values())


def test_a_code_stands_with_the_status_that_the_operation_answers_with(
    operations: dict[str, dict[str, Any]],
) -> None:
    """Some codes have two."""
    streamed = operations["chat_stream"]["x-error-codes"]
    assert streamed["400"] == ["provider_rejected"]
    assert "validation_error" in streamed["422"]
    assert operations["submit_public_form"]["x-error-codes"]["400"] == ["validation_error"]


def test_each_error_status_of_an_operation_has_codes_with_that_status(
    operations: dict[str, dict[str, Any]], codes: dict[str, dict[str, Any]]
) -> None:
    for name, operation in operations.items():
        documented = {status for status in operation["responses"] if status >= "400"}
        assert operation["x-error-codes"].keys() == documented, name
        for status, listed in operation["x-error-codes"].items():
            assert listed, name
            wrong = [code for code in listed if int(status) not in codes[code]["statuses"]]
            assert wrong == [], name


def test_errors_of_dependencies_count_as_those_of_their_handler(app: Litestar) -> None:
    handlers = {handler.handler_name: handler for _, _, handler in list_handlers(app)}
    kinds = openapi_codes.find_errors(handlers["get_agent"])
    assert all(issubclass(kind, ApiError) for kind in kinds)
    assert {kind.code for kind in kinds} >= {"agent_not_found"}
