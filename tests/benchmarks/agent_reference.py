"""The same participant by the reference's documented loop: wait, next, append, at its defaults."""

import json
import re
import subprocess
import sys
from pathlib import Path

scripts, folder, who = sys.argv[1:]
place = Path(folder)


def script(name: str, *words: str) -> str:
    command = [sys.executable, f"{scripts}/{name}.py", "--folder", folder, "--participant", who, *words]
    # It reads files while others write them, so a script may fail on half a file: an agent would try again.
    for _ in range(5):
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode == 0:
            return made.stdout
    sys.exit(made.returncode)


def append(event: str, doc: str) -> None:
    last = (place / "events.jsonl").read_text().splitlines()[-1]
    script(
        "append_event", "--event", event, "--summary", "Done", "--doc", doc, "--reply-to", str(json.loads(last)["seq"])
    )


def tick() -> None:
    path = place / "readiness.md"
    text = re.sub(r"- \[unresolved\] .*", "- [resolved] The measure", path.read_text())
    path.write_text(text.replace("- [ ]", "- [x]"))


def conclude() -> None:
    text = (place / "conclusion.md").read_text()
    text = re.sub(r"^- \[blocked\] .*$", "- [proceed] Go.", text, flags=re.MULTILINE).replace("TBD", "Done")
    (place / "conclusion.md").write_text(text)


while True:
    script("wait_for_turn")
    said = script("next_action")
    phase = re.search(r"^phase: (\w+)", said, re.MULTILINE)[1]
    events = [json.loads(line)["event"] for line in (place / "events.jsonl").read_text().splitlines()]
    if phase in ("completed", "blocked"):
        sys.exit(0)
    if phase == "drafting":
        append("proposal_submitted", "proposal.md")
    elif phase == "reviewing":
        append("review_submitted", "review.md")
        event = json.loads((place / "events.jsonl").read_text().splitlines()[-1])
        mine = [json.loads(line) for line in (place / "events.jsonl").read_text().splitlines()]
        event = next(one for one in reversed(mine) if one["from"] == who)
        with (place / "review.md").open("a") as review:
            review.write(f"\n## {event['at']} - {who} - seq {event['seq']}\n\nPosition:\n- In favour.\n")
    elif phase == "revising":
        append("proposal_revised", "proposal.md")
    elif phase == "decision_review" and "question_classified" not in events:
        tick()
        append("question_classified", "readiness.md")
    elif phase == "decision_review":
        append("decision_accepted", "decisions.md")
    elif "readiness_passed" not in events:
        append("readiness_passed", "readiness.md")
    else:
        conclude()
        append("completed", "conclusion.md")
