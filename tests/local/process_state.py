"""The state of processes that tests end."""

import psutil


def has_ended(process: psutil.Process) -> bool:
    """True also for a zombie, which no parent has waited for."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
