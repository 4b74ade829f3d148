"""Script that reads an SSH private key and writes it without encryption, in OpenSSH's format;
`connection_tests.py` runs it with limits. The key file sets the cost of the key derivation.
"""

import json
import sys

import asyncssh


def main() -> None:
    request = json.load(sys.stdin)
    key = asyncssh.import_private_key(request["key"], request["passphrase"] or None)
    sys.stdout.write(key.export_private_key("openssh").decode())
