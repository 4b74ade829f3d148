from app.kit.errors import NotFound


class ResponseNotFound(NotFound, code="response_not_found"): ...


class ModelNotFound(NotFound, code="model_not_found"): ...
