"""Strings <-> ids: normalisation, tokenizers trained in process, and their files. No torch here."""
