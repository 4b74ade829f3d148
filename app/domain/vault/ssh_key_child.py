"""Unlocks a private key; run in a process of its own, because its file says how long that takes."""

import json
import sys

import asyncssh

given = json.load(sys.stdin)
key = asyncssh.import_private_key(given["key"], given["passphrase"])
sys.stdout.write(key.export_private_key("openssh").decode())
