from app.kit.errors import ApiError, NotFound


class FileNotFound(NotFound, code="file_not_found"): ...


class RangeNotSatisfiable(ApiError, status=416, code="range_not_satisfiable"): ...
