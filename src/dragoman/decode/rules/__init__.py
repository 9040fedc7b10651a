"""Rules on what may come next: prefixes, required and forbidden phrases, n-grams."""
