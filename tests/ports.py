import socket


def free_port() -> int:
    """Returns a port that is currently free on loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
