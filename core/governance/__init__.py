"""Envelopes, statuses, goals, members, and the receipts our own systems leave (docs/specs/governance.md §3-8)."""
