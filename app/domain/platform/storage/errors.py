from app.kit.errors import ApiError


class QuotaExceeded(ApiError):
    status, code = 413, "quota_exceeded"
