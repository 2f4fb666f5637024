"""The validated model: knows files, never a screen (docs/design.md §1)."""
