"""What other areas may call."""

from . import answer_threads, progress, submitting, uploads
from .analytics import ViewCounter
from .progress import Progress
from .public_schemas import PublicForm, build_form
from .submission_schemas import AcceptedSubmission
from .submitting import Answers, Origin
