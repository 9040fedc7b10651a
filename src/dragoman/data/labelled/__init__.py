"""Labelled texts for training tasks: readers, input sequences and batches."""
