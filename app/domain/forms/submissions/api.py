"""What other areas may call."""

from app.domain.forms.submissions import answer_threads, progress, submitting, uploads
from app.domain.forms.submissions.analytics import ViewCounter
from app.domain.forms.submissions.progress import Progress
from app.domain.forms.submissions.public_schemas import PublicForm, build_form
from app.domain.forms.submissions.submission_schemas import AcceptedSubmission
from app.domain.forms.submissions.submitting import Answers, Origin
