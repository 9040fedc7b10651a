"""The lab: claims of lectures on attention, each tested by one command.

    experiments/    a file an experiment: claim, configurations, measurement, figure, rule of the verdict
    experiment.py   what an experiment declares            statistics.py   means, intervals, differences
    tasks.py        data that the lab makes itself         looks.py        what is measured of a run
    bench.py        runs, shared between experiments       draw.py         figures
    page.py         the page of one experiment             book.py         running one or all, and the book

No experiment has training code of its own: a run of the lab is an ordinary run directory.
"""
