"""Translator: text in, hypotheses out, around any search."""
