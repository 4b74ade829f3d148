from app.kit.errors import Conflict


class TenantNotEmpty(Conflict, code="tenant_not_empty"): ...


class TenantIsDefault(Conflict, code="tenant_is_default"): ...
