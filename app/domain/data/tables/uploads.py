"""The multipart body of an import; only the web tier imports the class of uploads."""

import msgspec
from litestar.datastructures import UploadFile


class ImportUpload(msgspec.Struct):
    """A CSV file whose first row names columns of the table. At most 25 MB unless configured
    otherwise.
    """

    file: UploadFile
