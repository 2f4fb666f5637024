"""Failure vocabulary: one failure, one code, one next command (docs/specs/governance.md §2)."""
