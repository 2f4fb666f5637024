"""Data that people edit: the vocabulary of documents and the tables beside it. No code."""
