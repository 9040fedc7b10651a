"""How good it is: metrics with their uncertainty, comparisons, search errors, and pictures of them."""
