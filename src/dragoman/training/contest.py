"""A short contest between configurations: successive halving (Jamieson & Talwalkar 2016).

    RUN.search/contest.json      who takes part, how long, and all results so far
    RUN.search/NAME/             one ordinary run each

In a round every contender trains for so long since its beginning, with a learning rate that falls to 0, and
is validated. The better half goes on from its checkpoints, with twice the time. The best one of the last
round becomes RUN: it goes on from its checkpoint with the minutes that are left. Everything is on the disk
after each contender, so a contest that was killed goes on where it stopped.
"""

from dataclasses import replace
from pathlib import Path
from shlex import quote

from dragoman import checkpoint
from dragoman.autopilot.contenders import rungs
from dragoman.checkpoint.model import CHECKPOINTS, save_tokenizers
from dragoman.config import from_dict, to_dict
from dragoman.errors import UserError
from dragoman.files import explained, replace_file, write_new
from dragoman.runs.directory import DATA, Outcome, Run
from dragoman.training.budget import Clock, Since
from dragoman.training.contest_record import (
    CONTEST,
    Contest,
    Result,
    Round,
    directory_of,
    encoded,
    ranked,
)
from dragoman.training.display import Display, NoDisplay, duration
from dragoman.training.progress import Spent, TrainingProgress
from dragoman.training.report import write_reasons
from dragoman.training.session import train_run


class Running:
    """Runs a contest to its end."""

    def __init__(self, out: Path, contest: Contest, display: Display, clock: Clock) -> None:
        self.out, self.contest, self.display, self.clock = out, contest, display, clock
        self.directory = directory_of(out)
        self._before = contest.elapsed

    def run(self) -> Run:
        """Return the winner's run, ready to resume; or the run that a signal stopped."""
        names = [contender.name for contender in self.contest.contenders]
        for number, (count, units) in enumerate(rungs(len(names))):
            names = names[:count]
            if number == len(self.contest.rounds):
                seconds = units * self.contest.unit
                self._keep(rounds=(*self.contest.rounds, Round(seconds, tuple(names))))
                told = f"{', '.join(names)}, {duration(seconds)} each"
                self.display.line(f"contest, round {number + 1}: {told}")
            stopped = self._round(number)
            if stopped is not None:
                return stopped
            names = ranked(self.contest.rounds[number].results, self._metric)
        self.contest = replace(self.contest, winner=names[0])
        self._keep(self.contest.rounds)
        return self._hand_over(Run.open(self.directory / names[0]))

    @property
    def _metric(self) -> str:
        return Run.open(self.directory / self.contest.contenders[0].name).config.train.metric

    def _keep(self, rounds: tuple[Round, ...]) -> None:
        elapsed = self._before + self.clock.seconds()
        self.contest = replace(self.contest, rounds=rounds, elapsed=elapsed)
        path = self.directory / CONTEST
        with explained(path):
            replace_file(path, encoded(self.contest))

    def _round(self, number: int) -> Run | None:
        """Train all contenders of a round that are left. Returns the run that a signal stopped, if any."""
        here = self.contest.rounds[number]
        for name in here.names[len(here.results) :]:
            run = Run.open(self.directory / name)
            result = self._train(run, here.seconds)
            if isinstance(result, Outcome):
                self.display.line(f"continue the contest with:  dragoman resume {quote(str(self.out))}")
                return run
            here = replace(here, results=(*here.results, result))
            self._keep(rounds=(*self.contest.rounds[:number], here))
            self.display.line(f"  {name}: {_told(result, run.config.train.metric)}")
        return None

    def _train(self, run: Run, seconds: float) -> Result | Outcome:
        """Train one contender. Returns its result, or the outcome if a signal stopped it."""
        train = replace(run.config.train, max_minutes=seconds / 60)
        if run.config.train != train:
            with run.locked():
                run.replace_config(replace(run.config, train=train))
        self.display.stage(f"contest: {run.directory.name}", 0, None)
        try:
            outcome = train_run(run, NoDisplay(), clock=Since(self.clock))
        except UserError as error:
            return Result(run.directory.name, failed=str(error))
        if outcome.exit_status:
            return outcome
        found = [record for record in run.metrics if record["kind"] == "valid"][-1]
        valid = run.prepared()
        nll = found["loss"] * valid.valid_targets / len(valid.valid)
        return Result(run.directory.name, outcome.update, found[run.config.train.metric], nll)

    def _hand_over(self, winner: Run) -> Run:
        """Create RUN with the winner's newest checkpoint and the elapsed time."""
        found = checkpoint.newest(winner.checkpoints)
        progress = from_dict(TrainingProgress, found.state["progress"], f"{found.path}: progress")
        progress = TrainingProgress(
            update=progress.update,
            epoch=progress.epoch,
            batch=progress.batch,
            window=progress.window,
            tokens=progress.tokens,
            skipped=progress.skipped,
            spent=Spent(self.contest.minutes, self.contest.elapsed),
        )
        config = replace(winner.config, train=replace(winner.config.train, **self.contest.train))
        prepared = winner.prepared()

        def fill(temporary: Path) -> None:
            prepared.link_into(temporary / DATA)
            save_tokenizers(temporary, prepared.src_tokenizer, prepared.tgt_tokenizer)
            tensors = {part: found.read(part) for part in found.parts}
            state = {**found.state, "progress": to_dict(progress)}
            checkpoint.save(temporary / CHECKPOINTS, found.name, tensors, state)
            write_new(temporary / CONTEST, (encoded(self.contest),))
            write_reasons(temporary, self.contest.reasons, self.contest.speed)

        name = winner.directory.name
        self.display.line(f"{name} wins the contest and trains for the remaining time")
        return Run.create_with(self.out, config, winner.fingerprint, fill)


def _told(result: Result, metric: str) -> str:
    if result.failed is not None:
        return f"failed: {result.failed}"
    return f"{metric} {result.value:.4g}, {result.nll:.4g} nats a target, after {result.updates:,} updates"
