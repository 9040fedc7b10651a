"""Search over a step function: greedy, beam, sampling, exhaustive."""
