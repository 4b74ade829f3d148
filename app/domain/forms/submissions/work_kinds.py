from typing import Final

from app.jobs.work import WorkKind

# Saves a row, starts the workflow and sends the mail of one submission.
PROCESS: Final = WorkKind(
    "forms.process", timeout_seconds=120, retry_delays=(1, 5, 30, 120, 600, 3600, 14400)
)
# Mails how many submissions of a form were not mailed within an hour.
SEND_DIGEST: Final = WorkKind("forms.digest")
# Deletes what a deleted submission caused, once nothing of it runs.
# An execution may wait for weeks.
ERASE: Final = WorkKind("forms.erase", retry_delays=(30, 120, 600, 3600, *[21600] * 360))
