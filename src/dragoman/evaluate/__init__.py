"""Evaluation: metrics with confidence intervals, comparisons, search errors, and figures."""
