"""Attacks that bash and the programs of the machine offer beyond those of the other languages."""

import asyncio
import re
from pathlib import Path

import pytest

from app.sandbox.limits import Limits
from tests.sandbox.sandbox_runner import (
    PROMPT_SECONDS,
    Attack,
    SandboxRunner,
    exists,
    in_one_tier,
    list_names,
)

LIMITS = Limits()

# `attempt NAME COMMAND…` prints `NAME could …` when the command succeeds.
_REACHING = r"""
# Limits can be lowered, never raised.
for limit in -c:unlimited -c:1 -n:4096 -u:4096 -d:unlimited -s:unlimited -t:unlimited -f:unlimited \
    -l:64 -l:unlimited -q:8192 -i:4096; do
  attempt "limit${limit%:*}" ulimit "${limit%:*}" "${limit#*:}"
done
attempt limits prlimit --pid $$ --nofile=4096:4096
# Reading by redirections, builtins and the history.
for place in /proc/1/environ /proc/self/environ /proc/kallsyms /proc/meminfo /proc/self/maps \
    /etc/passwd /etc/shadow /root/.bash_history /dev/kmsg /dev/mem /sys/kernel/notes; do
  attempt read eval "read -r line < $place"
  attempt mapfile eval "mapfile -t lines < $place"
  attempt source source "$place"
  attempt substitute eval "[ -n \"\$(< $place)\" ]"
  attempt open eval "exec {number}<>$place"
  attempt history eval "history -c; history -r $place && [ -n \"\$(history)\" ]"
  attempt load enable -f "$place" planted
  attempt compare cmp -s "$place" "$place"
  attempt copy eval "dd if=$place bs=1 count=1 status=none"
done
# Writing by the shell itself.
for place in /usr/planted /etc/planted /var/tmp/planted /dev/shm/planted /code/planted; do
  attempt history eval "history -s planted; history -w $place"
  attempt clobber eval "set -o noclobber; : > $place"
  attempt append eval "exec {number}>>$place"
done
# Connections of the shell, and programs that use them.
for place in tcp/127.0.0.1/1 tcp/localhost/22 udp/127.0.0.1/53 udp/8.8.8.8/53; do
  attempt connect eval "exec {number}<>/dev/$place"
done
attempt message logger --socket-errors=on planted
attempt terminal script -qc true /dev/null
attempt terminal eval "exec {number}<>/dev/tty"
# Rights, sessions, priorities.
for program in $(find /usr -xdev -perm /6000 -type f 2>/dev/null); do
  case ${program##*/} in
    su|runuser) attempt rights eval "$program -c 'id -u' </dev/null | grep -qx 0" ;;
    sudo|pkexec|doas) attempt rights eval "$program -n id -u | grep -qx 0" ;;
    newgrp|sg) attempt rights eval "echo 'id -g' | timeout 2 $program root | grep -qx 0" ;;
  esac
done
attempt rights eval "exec -a root su -c id"
attempt session setsid true
attempt priority renice -n -5 -p $$
attempt priority renice -n 19 -p $$
attempt priority ionice -c 1 -p $$
attempt priority chrt -o -p 0 $$
attempt priority chrt -f 1 true
attempt priority taskset -p 1 $$
attempt filter unshare --map-root-user true
attempt trace strace -p $$
attempt mount mount --bind /usr /tmp
attempt pipe mkfifo /tmp/planted
attempt pipe mkfifo ./planted
attempt device mknod /tmp/planted c 1 1
attempt locks eval '[ "$HOME" != /tmp ] && flock -x -E 9 /etc/passwd true'
attempt cron eval 'echo "* * * * * true" | crontab -'
attempt remove rm -f "$0"
attempt remove mv "$0" "$0-other"
"""


async def test_nothing_outside_is_reached_from_bash(
    runner: SandboxRunner, open_folder: Path
) -> None:
    output = await runner.run_attack("bash", Attack(python="", node="", bash=_REACHING))
    assert not re.findall(r"^\S+ could.*$", output, re.MULTILINE)
    assert not exists("/var/tmp/planted")
    assert list_names(open_folder) == []


_FORKING = {
    "coprocesses": "for i in {1..300}; do coproc { sleep 30; : @mark@; }; done; wait",
    "pipes": "bomb() { bomb | bomb & }; bomb; sleep 30; : @mark@",
    "subshells": "nest() { ( nest; : @mark@ ); }; nest; sleep 30",
}
_STUBBORN = {
    "exec": "[ ${#1} -gt 100 ] || exec bash $0 $1; sleep 30",
    "traps": "trap ':' TERM INT HUP QUIT PIPE ALRM XCPU; while :; do sleep 1 & wait; done",
    "ignoring": "trap '' TERM INT HUP QUIT PIPE ALRM XCPU; while :; do :; done",
    "stopped": "(kill -STOP $BASHPID) & kill -STOP $$",
    "exit trap": "trap 'while :; do :; done' EXIT; exit 0",
}


async def test_every_bomb_of_bash_ends_at_its_time(
    runner: SandboxRunner, subtests: pytest.Subtests
) -> None:
    for bombs in (_FORKING, _STUBBORN):
        attacks = [Attack(python="", node="", bash=code) for code in bombs.values()]
        outcomes = await asyncio.gather(*(runner.run_bomb("bash", one, 0.6) for one in attacks))
        for name, outcome in zip(bombs, outcomes, strict=True):
            with subtests.test(bomb=name):
                assert outcome.seconds < PROMPT_SECONDS
                assert outcome.max_processes <= LIMITS.processes + 4
    after = await runner.run("bash", "echo fine")
    assert after.output == b"fine\n"


@pytest.mark.usefixtures("little_memory")
@in_one_tier
async def test_a_program_that_sorts_has_the_memory_of_the_run(runner: SandboxRunner) -> None:
    """It asks for most of the machine's memory, and for files where that is not enough."""
    code = "yes {1..500} | sort -S 90% > /dev/null; echo sorted"
    outcome = await runner.run_bomb("bash", Attack(python="", node="", bash=code), 15)
    assert outcome.result.ending == "memory" or b"sort: " in outcome.result.log, outcome.result
