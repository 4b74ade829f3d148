"""Where user code runs: one killable process per run, in the strongest cage this machine has.

`box.Sandbox` is what others use. `bubblewrap` and `landlock` are the two tiers, `seccomp` the
system calls that both refuse, `runtimes` the interpreters that code may run on.
"""
