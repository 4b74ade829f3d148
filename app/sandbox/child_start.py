"""Script of every process that reads foreign bytes; `child_process.py` starts it.

It sets the limits, loads the script of its first argument, gives up all rights, and calls the
script's `main`, which reads the input. A script imports what it needs at its top, or in its `load`
what its libraries import at their first use: later, nothing can be imported. The first line of the
output has the limits that the machine does not have; it is empty where it has all.
"""

import codecs
import importlib.machinery
import importlib.util
import os
import sys
from typing import Any

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120  # avoids an import
_OWN_ARGUMENTS = 9
# Codecs are modules, too. Of the common ones, these are not built in.
_ENCODINGS = ("latin-1", "utf-16-le", "utf-16-be", "utf-8-sig")


def _load(path: str) -> Any:
    """Returns the module of the script. From then on, modules that it has not loaded do not exist:
    the process could read them on some machines, and not on others.
    """
    spec = importlib.util.spec_from_file_location("script", path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if hasattr(module, "load"):
        module.load()
    for encoding in _ENCODINGS:
        codecs.lookup(encoding)
    sys.meta_path.remove(importlib.machinery.PathFinder)
    return module


def main() -> None:
    # The process starts without a path to this code, or with one to another installation.
    sys.path.insert(0, _ROOT)
    from app.sandbox import isolation  # noqa: PLC0415

    script, readable, writable = sys.argv[1:4]
    parent, cpu, memory, file, open_files, niceness = map(int, sys.argv[4 : _OWN_ARGUMENTS + 1])
    sys.argv[:] = [script, *sys.argv[_OWN_ARGUMENTS + 1 :]]
    isolation.close_inherited()
    os.nice(niceness)
    isolation.limit("RLIMIT_CPU", cpu)
    isolation.limit("RLIMIT_NOFILE", open_files)
    isolation.limit_memory(memory)
    module = _load(script)
    # Not before: imports may write bytecode, and libraries a temporary file.
    isolation.limit("RLIMIT_FSIZE", file)
    missing = isolation.restrict(parent, readable=readable, writable=writable)
    os.write(1, "; ".join(missing).replace("\n", " ").encode() + b"\n")
    module.main()


if __name__ == "__main__":
    main()
