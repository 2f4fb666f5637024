"""How a person writes: fields, drafts, previews and guided forms (docs/specs/console.md §2)."""
