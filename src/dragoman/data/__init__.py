"""From files to batches: read, check, clean, encode, store, sample, collate.

This module imports nothing, so that the readers in `formats/` work without torch.
"""
