"""A participant that thinks no time: one process of `collab` a turn, each waiting for the next (`--wait`)."""

import subprocess
import sys
from pathlib import Path

collab, folder, who, log = sys.argv[1:]
FIXED = {
    "submit": [],
    "revise": [],
    "classify": ["--resolve", "The measure"],
    "review": ["--position", "In favour"],
    "accept": [],
    "ready": ["--tick-all"],
    "complete": ["--outcome", "proceed", "--rationale", "It was measured", "--next", "Read the table"],
}
words = [collab, "wait", "--folder", folder, "--participant", who]
with Path(log).open("a") as sink:
    while True:
        made = subprocess.run(words, capture_output=True, text=True, check=False)
        sink.write(f"{words}\n{made.stdout}{made.stderr}\n")
        if made.returncode != 0:
            sys.exit(made.returncode)
        command = next((line for line in made.stdout.splitlines() if line.startswith("command: ")), None)
        if "stop; collaboration is complete" in made.stdout:
            sys.exit(0)
        if command is None:
            sys.exit(9)
        verb = command.split()[2]
        words = [collab, verb, "--folder", folder, "--as", who, *FIXED[verb], "--wait"]
