from app.kit.errors import Forbidden, NotFound


class EmbedKeyNotFound(NotFound):
    code = "embed_key_not_found"


class OriginNotAllowed(Forbidden):
    code = "origin_not_allowed"
