"""What other areas may call."""

from .queries import find_unknown_ids
from .records import StoredUpload
from .service import (
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
from .serving import Conditions, Content
