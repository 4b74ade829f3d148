"""Decrypts an SSH private key, in a process of its own: the key file sets the cost of the key
derivation.
"""

import json
import sys

import asyncssh

request = json.load(sys.stdin)
key = asyncssh.import_private_key(request["key"], request["passphrase"])
sys.stdout.write(key.export_private_key("openssh").decode())
