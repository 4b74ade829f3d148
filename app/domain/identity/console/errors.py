from app.kit.errors import Forbidden


class CrossSiteRequest(Forbidden, code="cross_site_request"): ...
