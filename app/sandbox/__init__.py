"""Runs user code: one process per run, in the strongest sandbox tier that this machine has.

`box.Sandbox` is the interface. `bubblewrap` and `landlock` are the two tiers, `seccomp` has the
system calls that both refuse, `runtimes` the interpreters, `supervisor` the limits at run time.
"""
