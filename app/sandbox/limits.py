"""The resource limits of a run."""

import msgspec

MIB = 1024 * 1024


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a whole run, except `process_bytes`, `stack_bytes`, `open_files` and `mappings`,
    which apply to each of its processes.
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
    mappings: int = 8192
    locks: int = 512
    # A run starts a little below other processes, so that a short one is not kept waiting by them.
    # After so much processor time, or so long, it makes way for everything else: the time of
    # children that end without being waited for is not seen.
    nice: int = 5
    normal_cpu_seconds: float = 0.3
    normal_seconds: float = 2.0
