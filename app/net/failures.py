"""Says in words which address a connection failed at."""

import ssl


def describe_failure(error: BaseException | None, host: str, port: int | None) -> str:
    """`host` is the one that the tenant chose: the address that it leads to stays unknown."""
    address = f"{host}:{port}"
    match error:
        case ConnectionRefusedError():
            return f"{address} refused the connection"
        case TimeoutError():
            return f"{address} did not answer in time"
        case ConnectionError():
            return f"{address} closed the connection"
        case ssl.SSLCertVerificationError():
            return f"{address} has a certificate that is not trusted: {error.verify_message}"
        case ssl.SSLError():
            return f"{address} does not speak TLS, or not a version that is accepted here"
    return f"{address} cannot be reached"
