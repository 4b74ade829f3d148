from app.kit.errors import Invalid


class InvalidConfig(Invalid):
    """`details` maps `config.<key>` to what is wrong with it, without the value."""

    code = "invalid_config"
