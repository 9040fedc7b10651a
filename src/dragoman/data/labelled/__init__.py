"""Texts with labels, which tasks are learnt from: readers, the sequences that a network reads, batches."""
