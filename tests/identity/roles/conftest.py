import pytest


@pytest.fixture(autouse=True)
def _restore_grants(restored_grants: None) -> None:
    """Tests of roles change grants."""
