"""A module for each experiment, with one value `EXPERIMENT`; `dragoman.lab.catalogue` finds them."""
