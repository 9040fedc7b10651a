"""Search over a step function: from what a model finds probable to the translations that are printed."""
