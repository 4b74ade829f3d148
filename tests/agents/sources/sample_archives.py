"""Archives of repositories, as hosts make them and as attackers do."""

import gzip
import io
import tarfile
import zipfile
from collections.abc import Mapping

ROOT = "handbook-1f2e3d"


def pack_tar(files: Mapping[str, bytes], root: str = ROOT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name, body in files.items():
            member = tarfile.TarInfo(f"{root}/{name}" if root else name)
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
    return buffer.getvalue()


def pack_zip(files: Mapping[str, bytes], root: str = ROOT) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in files.items():
            archive.writestr(f"{root}/{name}" if root else name, body)
    return buffer.getvalue()


def pack_links() -> bytes:
    """Has links to files of the machine, and one file."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, kind in (("a.txt", tarfile.SYMTYPE), ("b.txt", tarfile.LNKTYPE)):
            member = tarfile.TarInfo(f"{ROOT}/{name}")
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
        device = tarfile.TarInfo(f"{ROOT}/c.txt")
        device.type = tarfile.CHRTYPE
        archive.addfile(device)
        member = tarfile.TarInfo(f"{ROOT}/d.txt")
        member.size = 1
        archive.addfile(member, io.BytesIO(b"d"))
    return buffer.getvalue()


def pack_bomb(megabytes: int) -> bytes:
    """Has one text that unpacks to so much."""
    member = tarfile.TarInfo(f"{ROOT}/bomb.txt")
    member.size = megabytes * 1024 * 1024
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=1) as stream:
        stream.write(member.tobuf())
        for _ in range(megabytes):
            stream.write(bytes(1024 * 1024))
        stream.write(bytes(1024))
    return buffer.getvalue()
