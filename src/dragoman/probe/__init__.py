"""Looking inside a model that has read a sentence: weights, vectors, attributions, alignments."""
