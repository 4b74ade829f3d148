"""Root keys and keyrings for tests."""

from app.crypto.keyring import Keyring
from app.domain.platform.mail import service as mail

OLD, NEW, LOST = Keyring.generate("old"), Keyring.generate("new"), Keyring.generate("lost")
OLD_ONLY, NEW_ONLY, LOST_ONLY = Keyring.parse(OLD), Keyring.parse(NEW), Keyring.parse(LOST)
NEW_AND_OLD = Keyring.parse(f"{NEW},{OLD}")
CONTEXT = mail.seal_context("ten_1", "mal_1")
