from app.kit.errors import ApiError


class QuotaExceeded(ApiError, status=413, code="quota_exceeded"): ...
