from app.kit.errors import PayloadTooLarge


class RecordingTooLarge(PayloadTooLarge):
    """The file is too large, or the recording too long; `details` has the limit."""
