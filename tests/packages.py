"""Packages made by tests, so that installing needs no registry."""

import base64
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path


def wheel(folder: Path, name: str, version: str, tag: str = "py3-none-any") -> Path:
    """The smallest one: a module that says its version."""
    module, about = name.replace("-", "_"), f"{name.replace('-', '_')}-{version}.dist-info"
    files = {
        f"{module}.py": f"SAYS = 'planted {version}'\n",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\n"
        f"Root-Is-Purelib: true\nTag: {tag}\n",
    }
    record = ""
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        record += f"{path},sha256={digest.decode()},{len(text)}\n"
    files[f"{about}/RECORD"] = f"{record}{about}/RECORD,,\n"
    made = folder / f"{module}-{version}-{tag}.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return made


def source(folder: Path, name: str, version: str, witness: Path) -> Path:
    """A package that must be built, and leaves a file behind when somebody tries."""
    module = name.replace("-", "_")
    files = {
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\n'
        'backend-path = ["."]\n',
        "backend.py": f"open({str(witness)!r}, 'w').close()\n",
    }
    made = folder / f"{module}-{version}.tar.gz"
    with tarfile.open(made, "w:gz") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(f"{module}-{version}/{path}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return made


def locked(package: Path) -> str:
    """Its line of a lock file."""
    name, version = package.name.removesuffix(".tar.gz").split("-")[:2]
    digest = hashlib.sha256(package.read_bytes()).hexdigest()
    return f"{name.replace('_', '-')}=={version} --hash=sha256:{digest}\n"
