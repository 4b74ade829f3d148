from app.kit.errors import ApiError, Conflict, NotFound


class FileNotFound(NotFound):
    code = "file_not_found"


class StorageQuotaExceeded(Conflict):
    code = "storage_quota_exceeded"


class RangeNotSatisfiable(ApiError):
    status, code = 416, "range_not_satisfiable"
