#!/usr/bin/env python3
"""`{{name}}` by `collab {{verb}}`: the same flags, output and exit codes as the protocol's own script."""

import os
import shutil
import sys

VERB = "{{verb}}"
MISSING = """\
error: the program `collab` is not installed, or not on PATH
  To install it from its checkout: python3 -m venv ~/.collab-venv && ~/.collab-venv/bin/pip install CHECKOUT
  Then add it to PATH: export PATH="$HOME/.collab-venv/bin:$PATH"
"""


def program():
    """Where `collab` is: on PATH, else beside this Python."""
    beside = os.path.join(os.path.dirname(sys.executable), "collab")
    return shutil.which("collab") or (beside if os.access(beside, os.X_OK) else None)


def main():
    """Become that program; 2 when there is none."""
    found = program()
    if found is None:
        sys.stderr.write(MISSING)
        return 2
    return os.execv(found, [found, VERB, *sys.argv[1:]])  # noqa: S606 - the arguments pass on as they are


if __name__ == "__main__":
    sys.exit(main())
