from typing import Any, ClassVar, Literal

import msgspec

SettingSource = Literal["environment", "default", "database"]


class SettingView(msgspec.Struct, kw_only=True):
    """One setting. Those of the instance come from the environment `variable` or are defaults;
    those of the tenant come from the database, where super_admin has set them, or from its plan.
    The value of a secret is not shown, only whether it `is_set`. `effective` is what follows from
    the value where that is not the value itself. Nothing is changed here: what the environment has
    set changes with the variable and a restart.
    """

    example: ClassVar[dict[str, Any]] = {
        "name": "allow_signup",
        "scope": "instance",
        "group": "Accounts and secrets",
        "description": "whether people may register without an invitation",
        "value": "auto",
        "effective": True,
        "is_secret": False,
        "is_set": False,
        "source": "default",
        "variable": "PARLEY_ALLOW_SIGNUP",
        "is_editable": False,
    }

    name: str
    scope: Literal["instance", "tenant"]
    group: str
    description: str
    value: Any
    effective: Any = None
    is_secret: bool = False
    is_set: bool
    source: SettingSource
    variable: str | None = None
    is_editable: bool = False


class SettingViews(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"data": [SettingView.example]}

    data: list[SettingView]
