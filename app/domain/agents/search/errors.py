from app.kit.errors import Conflict


class SearchEngineNotConfigured(Conflict, code="search_engine_not_configured"): ...
