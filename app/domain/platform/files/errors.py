from app.kit.errors import ApiError, NotFound


class FileNotFound(NotFound):
    code = "file_not_found"


class RangeNotSatisfiable(ApiError):
    status, code = 416, "range_not_satisfiable"
