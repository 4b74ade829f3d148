from app.kit.errors import Conflict, NotFound


class ApprovalNotFound(NotFound):
    code = "approval_not_found"


class AlreadyDecided(Conflict):
    code = "already_decided"


class ApprovalExpired(Conflict):
    code = "approval_expired"


class NobodyCanDecide(Conflict):
    code = "nobody_can_decide"
