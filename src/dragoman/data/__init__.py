"""From files to batches: read, check, clean, encode, store, sample, collate.

Nothing is imported here, so that the readers in `formats/` work where torch is not installed.
"""
