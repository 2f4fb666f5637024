"""Plans that hand tasks to delegates: contract, journal, gates, status (docs/specs/delegation.md)."""
