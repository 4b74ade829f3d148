"""Script that reads one document and cuts it into chunks; `parsing.py` runs it with limits.

It imports nothing of Parley but the readers. It reads the file from standard input and its format
from the first argument. It writes one line, `ok` or `!` and an error, and then the chunks as JSON:
a list of [text, page, row, heading]. With a second argument, the most characters, it writes the
text as a whole: [text, whether it was cut].
"""

import sys

from app.domain.agents.knowledge.readers import formats


def load() -> None:
    formats.load(sys.argv[1])


def main() -> None:
    kind, *limits = sys.argv[1:]
    max_characters = int(limits[0]) if limits else None
    response = formats.respond(sys.stdin.buffer.read(), kind, max_characters)
    sys.stdout.buffer.write(response)
