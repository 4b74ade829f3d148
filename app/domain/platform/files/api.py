"""What other areas may call."""

from app.domain.platform.files.queries import find_unknown_ids
from app.domain.platform.files.records import StoredUpload
from app.domain.platform.files.service import (
    FOLDER,
    Arrival,
    StreamedFile,
    build_too_large,
    delete,
    discard,
    receive,
    record,
    release,
    release_owned,
    serve,
    store,
)
from app.domain.platform.files.serving import Conditions, Content
