"""What workers do for forms from time to time."""

from typing import Final

from app.domain.forms.conversation.area import AREA as CONVERSATIONS
from app.domain.forms.definition.area import AREA as FORMS
from app.domain.forms.submissions.area import AREA as SUBMISSIONS

_AREAS = (FORMS, SUBMISSIONS, CONVERSATIONS)
RETENTION: Final = tuple(rule for area in _AREAS for rule in area.retention)
TASKS: Final = tuple(task for area in _AREAS for task in area.periodic_tasks)
