"""Images and series as sequences of vectors: readers, patches and batches."""
