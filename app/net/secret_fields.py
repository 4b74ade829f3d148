"""The secrets of a config: masked in answers, kept where a client sends the mask back, and never
sent to another destination than the one that they were given for.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from app.kit.errors import Invalid
from app.net import headers

MASK: Final = "********"


class SecretFields(msgspec.Struct, frozen=True):
    """`is_secret` decides by the name of a field. `maps` are the fields that are maps with secrets
    of their own.
    """

    is_secret: Callable[[str], bool]
    maps: Mapping[str, "SecretFields"] = {}

    def mask(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the config as the API shows it."""
        masked = {name: MASK if self.is_secret(name) else value for name, value in config.items()}
        for name, fields in self._maps_in(config).items():
            masked[name] = fields.mask(config[name])
        return masked

    def unmask(
        self, config: Mapping[str, Any], stored: Mapping[str, Any], path: str
    ) -> dict[str, Any]:
        """Replaces each mask by the stored value, so that sending a mask back changes nothing. The
        config may be invalid otherwise. Raises Invalid where no value is stored.
        """
        stored_values = {name.lower(): value for name, value in stored.items()}
        unmasked = dict(config)
        for name in self._find_masks(config):
            if name.lower() not in stored_values:
                raise Invalid.field(f"{path}.{name}", "has no stored value to keep")
            unmasked[name] = stored_values[name.lower()]
        for name, fields in self._maps_in(config).items():
            unmasked[name] = fields.unmask(config[name], stored.get(name, {}), f"{path}.{name}")
        return unmasked

    def check_move(self, config: Mapping[str, Any], path: str) -> None:
        """Raises Invalid if the config, as the client sent it, has a mask: it leads to another host
        than the stored one, which must not receive the stored secrets.
        """
        for name in self._find_masks(config):
            raise Invalid.field(
                f"{path}.{name}", "must be entered again, because this leads to another host"
            )
        for name, fields in self._maps_in(config).items():
            fields.check_move(config[name], f"{path}.{name}")

    def list_secrets(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the secrets that are not empty, by the path of each."""
        secrets = {name: value for name, value in config.items() if value and self.is_secret(name)}
        for name, fields in self._maps_in(config).items():
            found = fields.list_secrets(config[name])
            secrets |= {f"{name}.{key}": value for key, value in found.items()}
        return secrets

    def _find_masks(self, config: Mapping[str, Any]) -> list[str]:
        return [name for name, value in config.items() if value == MASK and self.is_secret(name)]

    def _maps_in(self, config: Mapping[str, Any]) -> dict[str, "SecretFields"]:
        maps = self.maps.items()
        return {name: fields for name, fields in maps if isinstance(config.get(name), dict)}


HEADERS: Final = SecretFields(headers.is_secret)
