"""What a new collaboration is made from, one folder a language. No code."""
