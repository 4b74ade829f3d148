"""Python packages for tests of installing, so that they need no registry."""

import base64
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path


def wheel(folder: Path, name: str, version: str, tag: str = "py3-none-any") -> Path:
    """Creates a wheel with one module."""
    module, metadata = name.replace("-", "_"), f"{name.replace('-', '_')}-{version}.dist-info"
    files = {
        f"{module}.py": f"SAYS = 'planted {version}'\n",
        f"{metadata}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{metadata}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\n"
        f"Root-Is-Purelib: true\nTag: {tag}\n",
    }
    record = ""
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        record += f"{path},sha256={digest.decode()},{len(text)}\n"
    files[f"{metadata}/RECORD"] = f"{record}{metadata}/RECORD,,\n"
    package = folder / f"{module}-{version}-{tag}.whl"
    with zipfile.ZipFile(package, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return package


def source(folder: Path, name: str, version: str, witness: Path) -> Path:
    """Creates a source package that writes the file `witness` when it is built."""
    module = name.replace("-", "_")
    files = {
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\n'
        'backend-path = ["."]\n',
        "backend.py": f"open({str(witness)!r}, 'w').close()\n",
    }
    package = folder / f"{module}-{version}.tar.gz"
    with tarfile.open(package, "w:gz") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(f"{module}-{version}/{path}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return package


def locked(package: Path) -> str:
    """Returns the line of a lock file for a package."""
    name, version = package.name.removesuffix(".tar.gz").split("-")[:2]
    digest = hashlib.sha256(package.read_bytes()).hexdigest()
    return f"{name.replace('_', '-')}=={version} --hash=sha256:{digest}\n"
