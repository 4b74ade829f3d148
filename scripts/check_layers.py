"""Checks that imports between packages and areas are those of `layers.toml`, and that
CONTRIBUTING.md draws them. With `--write`, draws them anew.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.layout import layers  # noqa: E402  # after the path is set


def main() -> int:
    if "--write" in sys.argv:
        document = layers.DOCUMENT.read_text(encoding="utf-8")
        layers.DOCUMENT.write_text(layers.draw_document(document), encoding="utf-8")
    problems = layers.check()
    print("\n".join(problems) or "all imports between packages and areas are declared")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
