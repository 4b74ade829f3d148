"""The resource limits of a run."""

import msgspec

MIB = 1024 * 1024


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a whole run, except `process_bytes`, `stack_bytes` and `open_files`, which apply to
    each of its processes.
    """

    processes: int = 48
    process_bytes: int = 1024 * MIB
    total_bytes: int = 512 * MIB
    scratch_bytes: int = 16 * MIB
    output_bytes: int = 1 * MIB
    log_bytes: int = 64 * 1024
    open_files: int = 256
    pending_signals: int = 256
    stack_bytes: int = 8 * MIB
