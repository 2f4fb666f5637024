"""The Agent Collaboration Protocol, schema generations 1 and 2 (docs/specs/acp.md)."""
