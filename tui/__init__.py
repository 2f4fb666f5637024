"""What a person meets: one-shot verbs and the console."""
