"""Workflows: the ambient engine (docs/specs/workflows.md)."""
