"""Script that reads one document and cuts it into chunks; `parsing.py` runs it with limits.

It imports nothing of Parley but the readers. It reads the file from standard input and its format
from the first argument. It writes one line, `ok` or `!` and an error, and then the chunks as JSON:
a list of [text, page, row].
"""

import sys
from pathlib import Path


def main() -> None:
    # The process starts without a path to this code, or with one to another installation.
    sys.path.insert(0, str(Path(__file__).parents[3]))
    from app.domain.knowledge.readers import formats  # noqa: PLC0415

    sys.stdout.buffer.write(formats.respond(sys.stdin.buffer.read(), sys.argv[1]))


if __name__ == "__main__":
    main()
