"""Beam search on a GPU: continuous batches and recorded steps."""
