import random
import socket

# Below the ports that systems give to outgoing connections, which could
# otherwise take a port between the moment it was found and its use.
_FIRST, _LAST = 20_000, 32_000
_handed_out: set[int] = set()


def free_port() -> int:
    """Returns a port on loopback that nothing listens on and that was not returned before."""
    for port in random.sample(range(_FIRST, _LAST), 100):
        if port not in _handed_out and _can_bind(port):
            _handed_out.add(port)
            return port
    raise RuntimeError(f"no free port found between {_FIRST} and {_LAST}")


def _can_bind(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
