"""Code that the sandbox runs at start-up: it prints which forbidden actions succeeded."""

CODE = """
import json, os, resource, socket, sys
breaches = []
sys.stdin.read()
try:
    open(CANARY).read(); breaches.append("read a file of the machine")
except OSError:
    pass
for kind in (socket.AF_INET, socket.AF_UNIX):
    try:
        socket.socket(kind); breaches.append(f"open a socket of kind {kind}")
    except OSError:
        pass
for path in ("/parley", "/usr/parley", "/code/parley", "/var/tmp/parley"):
    try:
        open(path, "w"); breaches.append(f"write to {path}")
    except OSError:
        pass
if os.getuid() == 0:
    breaches.append("be root")
try:
    os.setuid(0); breaches.append("become root")
except OSError:
    pass
if resource.getrlimit(resource.RLIMIT_NPROC)[1] == resource.RLIM_INFINITY:
    breaches.append("start any number of processes")
try:
    os.listdir("/proc"); breaches.append("see processes")
except OSError:
    pass
try:
    os.kill(os.getppid(), 0)
    if os.getppid() > 1:
        breaches.append("signal its parent")
except OSError:
    pass
known = {"PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH", "PWD", "SHLVL",
         "_", "OLDPWD", "LC_CTYPE", "OPENSSL_CONF"}
if set(os.environ) - known:
    breaches.append("see the environment: " + " ".join(set(os.environ) - known))
print(json.dumps(breaches))
"""
