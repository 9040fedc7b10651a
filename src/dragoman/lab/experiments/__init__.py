"""A module an experiment, each with one value `EXPERIMENT`; `dragoman.lab.catalogue` lists them."""
