"""Script that reads an archive of a repository: a .tar.gz or a .zip file.

`archives.py` runs it with limits. Standard input has the length of a JSON request in a line, the
request, and the archive. It writes one line, `ok` or `!` and an error, and then JSON: of the files
in a folder [path, size, SHA-256], or of some of them [path, content in Base64].

Nothing is unpacked to a disk. Files that lead elsewhere, such as links, are left out.
"""

import base64
import codecs
import gzip
import hashlib
import io
import json
import posixpath
import stat
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any

_MIB = 1024 * 1024
MAX_UNPACKED_BYTES = 512 * _MIB
MAX_FILES = 50_000
_MAX_NAME_CHARS = 1000
_IS_ENCRYPTED = 0x1
_UNIX_MODE_BITS = 16
_DAMAGED = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, gzip.BadGzipFile),
    *(EOFError, OSError, ValueError, NotImplementedError, RuntimeError),
)


class Refused(Exception):
    pass


class _Bounded(io.RawIOBase):
    """Ends a stream that unpacks to too much."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._left = stream, MAX_UNPACKED_BYTES

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        content: bytes = self._stream.read(min(size, _MIB) if size >= 0 else _MIB)
        self._left -= len(content)
        if self._left < 0:
            raise Refused(f"unpacks to more than {MAX_UNPACKED_BYTES // _MIB} MB")
        return content


def _files(content: bytes) -> Iterator[tuple[str, int, IO[bytes]]]:
    """Yields name, size and content of each regular file."""
    if content.startswith(b"PK"):
        yield from _zip_files(content)
    elif content.startswith(b"\x1f\x8b"):
        yield from _tar_files(content)
    else:
        raise Refused("is neither a .tar.gz nor a .zip file")


def _tar_files(content: bytes) -> Iterator[tuple[str, int, IO[bytes]]]:
    stream: Any = _Bounded(gzip.GzipFile(fileobj=io.BytesIO(content)))
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isreg() else None
            if file is not None and not member.issparse():
                yield member.name, member.size, file


def _zip_files(content: bytes) -> Iterator[tuple[str, int, IO[bytes]]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > MAX_UNPACKED_BYTES:
            raise Refused(f"unpacks to more than {MAX_UNPACKED_BYTES // _MIB} MB")
        for member in members:
            kind = stat.S_IFMT(member.external_attr >> _UNIX_MODE_BITS)
            is_regular = kind in {0, stat.S_IFREG} and not member.is_dir()
            if is_regular and not member.flag_bits & _IS_ENCRYPTED:
                with archive.open(member) as file:
                    yield member.filename, member.file_size, file


def _check_name(name: str) -> str:
    """Returns the path of a file. An archive that names places outside of it is a hostile one."""
    if "\0" in name or "\\" in name or name.startswith("/") or len(name) > _MAX_NAME_CHARS:
        raise Refused("has a file with a name that is not a path in it")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise Refused("has a file whose name is not Unicode") from None
    path = posixpath.normpath(name)
    if path.startswith("..") or ".." in name.split("/"):
        raise Refused("has a file outside of its folder")
    return path


def _select(content: bytes, request: dict[str, Any]) -> Iterator[tuple[str, int, IO[bytes]]]:
    """Yields the files of the folder, by their paths in it. Hosts of repositories put everything
    into one folder, whose name has the version.
    """
    folder = request["folder"].strip("/")
    root: str | None = None
    for count, (name, size, file) in enumerate(_files(content)):
        if count >= MAX_FILES:
            raise Refused(f"has more than {MAX_FILES:,} files")
        first, _, path = _check_name(name).partition("/")
        root = first if root is None else root
        if first != root or not path:
            raise Refused("does not have all its files in one folder, as hosts of code pack them")
        if folder and not path.startswith(f"{folder}/"):
            continue
        path = path[len(folder) + 1 :] if folder else path
        if path.rpartition(".")[2].lower() in request["endings"]:
            yield path, size, file


def list_files(content: bytes, request: dict[str, Any]) -> Any:
    files: list[Any] = []
    for path, size, file in _select(content, request):
        sha256 = _hash(file) if size <= request["max_bytes"] else ""
        files.append([path, size, sha256])
    return files


def _hash(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while part := file.read(_MIB):
        digest.update(part)
    return digest.hexdigest()


def read_files(content: bytes, request: dict[str, Any]) -> Any:
    """Returns those with the paths of the request that fit."""
    paths, left = set(request["paths"]), request["max_bytes"]
    files: list[Any] = []
    for path, size, file in _select(content, request):
        if path in paths and size <= left:
            body = file.read(size)
            left -= len(body)
            files.append([path, base64.b64encode(body).decode()])
    return files


def respond(line: bytes, rest: bytes) -> bytes:
    length = int(line)
    request = json.loads(rest[:length])
    read = read_files if "paths" in request else list_files
    try:
        return b"ok\n" + json.dumps(read(rest[length:], request)).encode()
    except Refused as problem:
        return f"!{problem}\n".encode()
    except MemoryError:
        return b"!takes too much memory to read\n"
    except _DAMAGED:
        return b"!is damaged\n"


def load() -> None:
    """Names in .zip files that are not Unicode."""
    codecs.lookup("cp437")


def main() -> None:
    stream = sys.stdin.buffer
    sys.stdout.buffer.write(respond(stream.readline(), stream.read()))
