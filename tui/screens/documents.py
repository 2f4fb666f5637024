"""What the documents of a collaboration are called as tabs, which comes first, and what an empty one says."""

from __future__ import annotations

NAMES = {
    "proposal.md": ("Proposal", "Prop"),
    "review.md": ("Review", "Rev"),
    "decisions.md": ("Decisions", "Dec"),
    "readiness.md": ("Readiness", "Ready"),
    "conclusion.md": ("Conclusion", "Concl"),
}
FIRST = {
    "decision_review": "decisions.md",
    "readiness_check": "readiness.md",
    "completed": "conclusion.md",
    "revising": "review.md",
}
"""The document that somebody who opens a folder in this phase wants first; else the proposal."""

FIRST_FOR = {"question_classified": "readiness.md", "completed": "conclusion.md"}
EMPTY = {
    "proposal.md": ("No proposal yet. Its owner writes it", "edit"),
    "review.md": ("No review yet. A reviewer writes one", "review"),
    "decisions.md": ("No decision yet. The owner writes them", "edit"),
    "readiness.md": ("No question yet. The owner classifies them", "classify"),
    "conclusion.md": ("No conclusion yet. The owner writes it", "conclude"),
}
"""What an empty document says, and the action that fills it."""


def widget_id(name: str) -> str:
    """The id of the widget that shows a document."""
    return f"doc-{name.removesuffix('.md')}"
