"""Code that is locked in at start-up: it says what it could do that nobody may."""

CODE = """
import json, os, resource, socket, sys
could = []
sys.stdin.read()
try:
    open(CANARY).read(); could.append("read a file of the machine")
except OSError:
    pass
for kind in (socket.AF_INET, socket.AF_UNIX):
    try:
        socket.socket(kind); could.append(f"open a socket of kind {kind}")
    except OSError:
        pass
for place in ("/parley", "/usr/parley", "/code/parley", "/var/tmp/parley"):
    try:
        open(place, "w"); could.append(f"write to {place}")
    except OSError:
        pass
if os.getuid() == 0:
    could.append("be root")
try:
    os.setuid(0); could.append("become root")
except OSError:
    pass
if resource.getrlimit(resource.RLIMIT_NPROC)[1] == resource.RLIM_INFINITY:
    could.append("start any number of processes")
try:
    os.listdir("/proc"); could.append("see processes")
except OSError:
    pass
try:
    os.kill(os.getppid(), 0)
    if os.getppid() > 1:
        could.append("signal whoever started it")
except OSError:
    pass
known = {"PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH", "PWD", "SHLVL",
         "_", "OLDPWD", "LC_CTYPE", "OPENSSL_CONF"}
if set(os.environ) - known:
    could.append("see the environment: " + " ".join(set(os.environ) - known))
print(json.dumps(could))
"""
