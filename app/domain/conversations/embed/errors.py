from app.kit.errors import Forbidden, NotFound, RateLimited, Unauthorized


class EmbedKeyNotFound(NotFound, code="embed_key_not_found"): ...


class OriginNotAllowed(Forbidden, code="origin_not_allowed"): ...


class SessionTokenRequired(Unauthorized, code="session_token_required"): ...


class SessionMismatch(Forbidden, code="session_mismatch"):
    """A visitor token was used for another session, or by another origin."""


class UserTokenRequired(Unauthorized, code="user_token_required"): ...


class UserTokenInvalid(Unauthorized, code="user_token_invalid"): ...


class VoiceNotAllowed(Forbidden, code="voice_not_allowed"): ...


class FeedbackNotAllowed(Forbidden, code="feedback_not_allowed"): ...


class AttachmentsNotAllowed(Forbidden, code="attachments_not_allowed"): ...


class DailyLimitReached(RateLimited, code="daily_limit_reached"): ...
