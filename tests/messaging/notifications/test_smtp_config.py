"""The host of a mail server in the config of a channel."""

import pytest

from app.domain.messaging.notifications import configs
from app.domain.messaging.notifications.errors import InvalidConfig
from app.domain.messaging.notifications.providers.registry import PROVIDERS
from app.net.egress import Guard


def test_a_mail_server_at_a_private_address_is_refused_when_it_is_saved(
    subtests: pytest.Subtests,
) -> None:
    for host in ["10.0.0.1", "127.0.0.1", "169.254.169.254", "::1", "fd00::1"]:
        with subtests.test(host=host):
            values = {"host": host, "from": "ann@example.com"}
            with pytest.raises(InvalidConfig) as refused:
                configs.validate(PROVIDERS["smtp"], values, Guard(()))
            assert list(refused.value.details or {}) == ["config.host"]


def test_a_mail_server_that_the_operator_admits_is_accepted() -> None:
    values = {"host": "10.0.0.1", "from": "ann@example.com"}
    assert configs.validate(PROVIDERS["smtp"], values, Guard(("10.0.0.1",)))
