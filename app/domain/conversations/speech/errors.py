from app.kit.errors import FileTooLarge


class RecordingTooLarge(FileTooLarge):
    """The file is too large, or the recording too long; `details` has the limit."""
