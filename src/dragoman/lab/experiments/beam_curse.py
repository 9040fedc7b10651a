"""Very wide beams, with and without length normalisation."""

from statistics import fmean

from dragoman.lab.bench import Bench
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Verdict, fails, holds, holds_for
from dragoman.lab.experiments import search_errors
from dragoman.lab.looks import symbols_right, translate
from dragoman.lab.statistics import Numbers, mean, surely_greater

BEAMS = (1, 4, 10, 30, 100)
PLAIN, NORMALISED = "by log p", "by log p / length"


def measure(bench: Bench) -> Numbers:
    found: Numbers = {PLAIN: {}, NORMALISED: {}}
    pairs = bench.test_pairs(search_errors.SHARE)
    for label, alpha in ((PLAIN, 0.0), (NORMALISED, 1.0)):
        for beam in BEAMS:
            found[label][str(beam)] = [
                fmean(
                    symbols_right(output, reference)
                    for output, (_, reference) in zip(
                        translate(run, pairs, bench.device, beam, alpha), pairs, strict=True
                    )
                )
                for run in bench.runs[search_errors.SHARE]
            ]
    return found


def rule(numbers: Numbers) -> Verdict:
    """Holds if without normalisation the widest beam is surely worse than beam 4, and with it it is not.
    Holds here for both rankings if both are worse."""
    worse = {label: surely_greater(cells["4"], cells[str(BEAMS[-1])]) for label, cells in numbers.items()}
    told = "; ".join(f"{n}: {mean(c['4']):.1f} → {mean(c[str(BEAMS[-1])]):.1f}" for n, c in numbers.items())
    if not worse[PLAIN]:
        return fails(f"from beam 4 to {BEAMS[-1]}: {told}")
    if worse[NORMALISED]:
        return holds_for(f"both rankings; from beam 4 to {BEAMS[-1]}: {told}")
    return holds(f"from beam 4 to {BEAMS[-1]}: {told}")


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "beam", "percent of words at their place", log_x=True)


EXPERIMENT = Experiment(
    name="beam-curse",
    lecture=1,
    claim="Very wide beams make translations worse, because short ones score higher; length normalisation "
    "helps.",
    how="The runs of search-errors translate with beams of up to 100, ranked by log p and by log p / length.",
    literature="Koehn & Knowles 2017, section 3.6: quality falls with wide beams, less so with "
    "normalisation.",
    settings=search_errors.settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=search_errors.EXPERIMENT.quick,
    full=search_errors.EXPERIMENT.full,
    cell="percent of words at their place, by beam",
)
