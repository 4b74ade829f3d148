from app.kit.errors import NotFound


class ServiceKeyNotFound(NotFound, code="service_key_not_found"): ...
