"""Addresses that no tool may connect to, and configs with them."""

from typing import Any

import pytest

# Tests allow 127.0.0.1 and localhost, so loopback is 127.0.0.2 here.
HOSTS = [
    pytest.param("127.0.0.2", id="loopback"),
    pytest.param("2130706434", id="decimal"),
    pytest.param("0x7f000002", id="hex"),
    pytest.param("0x7f.0.0.2", id="hex parts"),
    pytest.param("017700000002", id="octal"),
    pytest.param("0177.0.0.2", id="octal parts"),
    pytest.param("127.2", id="short"),
    pytest.param("127.0.0.2.", id="a dot at the end"),
    pytest.param("0.0.0.0", id="unspecified"),
    pytest.param("0", id="zero"),
    pytest.param("10.0.0.1", id="private 10"),
    pytest.param("172.16.0.1", id="private 172.16"),
    pytest.param("192.168.1.1", id="private 192.168"),
    pytest.param("100.64.0.1", id="CGNAT"),
    pytest.param("169.254.169.254", id="metadata"),
    pytest.param("2852039166", id="metadata, decimal"),
    pytest.param("0xa9fea9fe", id="metadata, hex"),
    pytest.param("224.0.0.1", id="multicast"),
    pytest.param("255.255.255.255", id="broadcast"),
    pytest.param("[::1]", id="loopback 6"),
    pytest.param("[::]", id="unspecified 6"),
    pytest.param("[::ffff:127.0.0.1]", id="mapped loopback"),
    pytest.param("[::ffff:7f00:2]", id="mapped loopback in hex"),
    pytest.param("[::ffff:169.254.169.254]", id="mapped metadata"),
    pytest.param("[::127.0.0.1]", id="IPv4-compatible"),
    pytest.param("[64:ff9b::7f00:1]", id="NAT64"),
    pytest.param("[64:ff9b::a9fe:a9fe]", id="NAT64 of metadata"),
    pytest.param("[2002:7f00:1::]", id="6to4"),
    pytest.param("[fd00::1]", id="unique-local"),
    pytest.param("[fd00:ec2::254]", id="metadata 6"),
    pytest.param("[fe80::1]", id="link-local"),
]

URLS = [
    pytest.param("file:///etc/passwd", id="file"),
    pytest.param("gopher://127.0.0.1:6379/_FLUSHALL", id="gopher"),
    pytest.param("ftp://127.0.0.1/", id="ftp"),
    pytest.param("dict://127.0.0.1:11211/", id="dict"),
    pytest.param("unix:///run/docker.sock", id="unix"),
    pytest.param("javascript:alert(1)", id="javascript"),
    pytest.param("data:text/plain,x", id="data"),
    pytest.param("//127.0.0.1/", id="no scheme"),
    pytest.param("127.0.0.1", id="no URL"),
    pytest.param("https://user:pass@example.com/", id="user and password"),
    pytest.param("https://user@example.com/", id="user"),
    pytest.param("https://example.com@127.0.0.2/", id="a user that looks like a host"),
    pytest.param("http://127.0.0.1:80@127.0.0.2/", id="a user that looks like an allowed host"),
    pytest.param("http://127.0.0.2#@example.com/", id="a fragment that looks like a host"),
    pytest.param("http://127.0.0.2?@example.com/", id="a query that looks like a host"),
    pytest.param("http://127.0.0.2\\@example.com/", id="a backslash"),
    pytest.param("http://[::1", id="half a bracket"),
    pytest.param("https://", id="no host"),
    pytest.param("https:///etc/passwd", id="an empty host"),
    pytest.param("http://①②⑦.⓪.⓪.②/", id="digits in circles"),
    pytest.param("http://127。0。0。2/", id="wide dots"),
]


def build_config(tool_type: str, url: str) -> dict[str, Any]:
    match tool_type:
        case "rest_api":
            return {"base_url": url, "endpoints": {"one": {"method": "GET", "path": "/"}}}
        case "webhook":
            return {"url": url}
        case _:
            return {"kind": "mcp", "url": url, "tool": "add"}


PRIVATE = [
    "127.0.0.2",
    "10.0.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "::1",
    "::ffff:127.0.0.1",
    "64:ff9b::7f00:1",
    "fd00::1",
]
