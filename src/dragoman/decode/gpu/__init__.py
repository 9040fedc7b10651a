"""Beam search on a GPU: continuous batching and CUDA graphs."""
