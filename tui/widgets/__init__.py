"""What screens are made of: viewers, lists, rails and panels (docs/specs/console.md §2, §4)."""
