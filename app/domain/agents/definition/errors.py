from app.kit.errors import Conflict, NotFound


class AgentNotFound(NotFound):
    code = "agent_not_found"


class VersionNotFound(NotFound):
    code = "version_not_found"


class SubAgentNotFound(NotFound):
    code = "sub_agent_not_found"


class AgentArchived(Conflict):
    code = "agent_archived"


class SubAgentCycle(Conflict):
    code = "sub_agent_cycle"
