from app.kit.concurrency import ConcurrencyLimit

_MAX_UPLOADS = 20


class UploadLimit(ConcurrencyLimit):
    """Limits how many files of one tenant arrive at the same time: each has some megabytes in
    memory. One per process.
    """

    def __init__(self, max_uploads: int = _MAX_UPLOADS) -> None:
        super().__init__(max_uploads)
