"""Constraints on the next token: prefixes, required and forbidden phrases, n-grams."""
