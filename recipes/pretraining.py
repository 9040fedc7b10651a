"""What pre-training gains: four language models and ULMFiT pre-trained on the same text and fine-tuned beside
training from scratch, ELMo's layers as features, and word perplexity on the Penn Treebank.

    python recipes/pretraining.py text --data DATA --out text       # the files to learn from
    python recipes/pretraining.py run --text text --out runs/gain --at-once 15 --at-first 10
    python recipes/pretraining.py table --out runs/gain

DATA holds europarl, tatoeba, newstest, multi30k, sst2, wnut17 and ptb, as pretraining.md says. Every run is
one of dragoman's; results.jsonl beside them has a line for each as soon as it is finished. Validation data
choose everything, test data are scored once a run.
"""

import argparse
import json
import multiprocessing
import re
import shutil
import statistics
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

from pretraining_jobs import jobs
from pretraining_parts import Budget, Job
from pretraining_text import make_text


def directory_of(out: Path, name: str) -> Path:
    return out / re.sub(r"[^a-z0-9@#]+", "-", name.lower()).strip("-")


def execute(job: Job, out: Path, chosen: Sequence[str], common: tuple[str, ...]) -> dict[str, Any]:
    """In a process of its own. What went wrong is told, not raised: the others go on."""
    import dragoman
    from dragoman.data.config import SourceConfig
    from dragoman.data.labelled.read import check_targets, read_examples
    from dragoman.learning.task_validation import task_metrics
    from dragoman.learning.text_evaluation import text_metrics
    from dragoman.runs.opening import open_predictor
    from dragoman.runs.records import read_records

    began, directory = time.time(), directory_of(out, job.name)
    settings = [*job.settings, *chosen]
    found: dict[str, Any] = {"name": job.name, "began": began, "settings": settings}
    try:
        start = [f"start={directory_of(out, job.start)}"] if job.start else []
        run = dragoman.train(
            *job.files,
            out=directory,
            overrides=[*start, *job.overrides, *settings, *common],
            valid=[job.valid] if job.valid else [],
            quiet=True,
        )
        valid = [record for record in run.metrics if record["kind"] == "valid"]
        found |= {"rate": run.config.optim.rate, "seed": run.config.seed, "best": run.best, "last": valid[-1]}
        found |= {"curve": [[r["update"], round(r["loss"], 4), r.get("accuracy")] for r in valid]}
        found["speed"] = speed(read_records(run.directory / "timing.jsonl"))
        found |= {"updates": run.outcome.update if run.outcome else None, "trained": time.time() - began}
        if run.config.task is None:
            if job.test:
                found["test"] = text_metrics(run, [job.test])
        elif job.test:
            predictor = open_predictor(run)
            task = predictor.task
            examples = list(check_targets(read_examples(SourceConfig((job.test,)), task, True), task))
            found["test"] = task_metrics(predictor.predict(examples), examples, task)
            found["mixture"] = predictor.model.mixture()
            found["parameters"] = sum(p.numel() for p in predictor.model.parameters())
        if not job.kept:
            shutil.rmtree(directory / "checkpoints")
    except BaseException:
        found["error"] = traceback.format_exc()[-2000:]
    found["seconds"] = time.time() - began
    return found


def speed(timing: Sequence[dict[str, Any]]) -> float | None:
    """Updates a second between the first and the last line of the log; validations take their time too."""
    lines = [(record["update"], record["elapsed"]) for record in timing if record["kind"] == "train"]
    if len(lines) < 2:
        return None
    return (lines[-1][0] - lines[0][0]) / max(1e-9, lines[-1][1] - lines[0][1])


def best_of(names: Sequence[str], results: dict[str, dict[str, Any]]) -> list[str]:
    """The settings of the run that was the best on validation data; none where all have failed."""
    done = [found for name in names if (found := results.get(name)) and "error" not in found]
    chosen = max(done, key=lambda found: found["best"]["value"], default=None)
    return [] if chosen is None else chosen["settings"]


def run(options: argparse.Namespace) -> None:
    began, file = time.time(), options.results or options.out / "results.jsonl"
    waiting = [j for j in jobs(options.text, options.budget) if re.search(options.only, j.name)]
    options.out.mkdir(parents=True, exist_ok=True)
    results: dict[str, dict[str, Any]] = {}
    running: dict[Future[dict[str, Any]], Job] = {}
    ends = began + options.seconds
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(options.at_once, mp_context=context)
    with file.open("a") as log:
        while (waiting or running) and time.time() < ends:
            waiting = without_lost(waiting, {name for name, found in results.items() if "error" in found})
            open_ones = {job.name for job in (*waiting, *running.values())}
            ready = [job for job in waiting if not job.needs & open_ones]
            first = any(name.endswith(" general") for name in open_ones)
            room = min(options.at_once, options.at_first if first else options.at_once) - len(running)
            for job in ready[: max(0, room)]:
                waiting.remove(job)
                chosen = best_of(job.tried, results)
                running[pool.submit(execute, job, options.out, chosen, tuple(options.overrides))] = job
            for future in wait(running, max(0, ends - time.time()), FIRST_COMPLETED).done:
                job = running.pop(future)
                results[job.name] = found = future.result()
                log.write(json.dumps(found) + "\n")
                log.flush()
                print(f"{time.time() - began:6.1f} {told(found)}", flush=True)
    print_tables(list(results.values()))
    if left := [job.name for job in (*running.values(), *waiting)]:
        print("not done:", *left, sep="\n  ", flush=True)
    pool.shutdown(wait=not running, cancel_futures=True)
    for child in multiprocessing.active_children():
        child.kill()


def without_lost(waiting: list[Job], failed: set[str]) -> list[Job]:
    """Jobs that begin with one that has failed, or with one that is lost itself, are lost."""
    while lost := {job.name for job in waiting if job.start in failed}:
        failed = failed | lost
        waiting = [job for job in waiting if job.name not in lost]
    return waiting


def told(found: dict[str, Any]) -> str:
    short = {name: round(value, 4) for name, value in found.get("test", {}).items()}
    result = found.get("error") or f"{found['best']['metric']} {found['best']['value']:.4f} {short}"
    times = f"{found['seconds']:6.1f} s, {found.get('updates') or 0} at {found.get('speed') or 0:.1f}/s"
    return f"{times} {found['name']} {' '.join(found['settings'])}: {result}"


def print_tables(results: Sequence[dict[str, Any]]) -> None:
    """Mean and spread over seeds; of the rates that were tried, the best on validation data counts."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for found in results:
        if "error" not in found and "test" in found:
            groups.setdefault(re.split(" [@#]", found["name"])[0], []).append(found)
    print("\n| run | settings | validation | test | seeds |\n|---|---|---|---|---|")
    for name, group in groups.items():
        tried = [found for found in group if "@" in found["name"]]
        best = [max(tried, key=lambda found: found["best"]["value"])] if tried else []
        counted = [*best, *(found for found in group if "@" not in found["name"])]
        metric = "word_perplexity" if name.startswith("ptb") else counted[0]["best"]["metric"]
        scores = [found["test"][metric] * (1 if name.startswith("ptb") else 100) for found in counted]
        valid = statistics.mean(found["best"]["value"] for found in counted)
        spread = f" ± {statistics.stdev(scores):.2f}" if len(scores) > 1 else ""
        figure = f"{statistics.mean(scores):.2f}{spread}"
        settings = ", ".join(counted[0]["settings"])
        print(f"| {name} | {settings} | {valid:.4f} | {figure} | {len(scores)} |")


def table(options: argparse.Namespace) -> None:
    file = options.results or options.out / "results.jsonl"
    print_tables([json.loads(line) for line in file.read_text().splitlines()])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("step", choices=("text", "run", "table"))
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--text", type=Path, default=Path("text"))
    parser.add_argument("--out", type=Path, default=Path("runs/gain"))
    parser.add_argument("--results", type=Path, help="instead of results.jsonl beside the runs")
    parser.add_argument("--longest", type=int, default=40, help="words of a line of europarl, at most")
    parser.add_argument("--at-once", type=int, default=1, help="runs that share the machine")
    parser.add_argument(
        "--at-first", type=int, default=10**6, help="while there are language models to wait for"
    )
    parser.add_argument("--seconds", type=float, default=1e9, help="after which all is left as it is")
    parser.add_argument("--only", default="", help="a regular expression of names of runs")
    parser.add_argument("--budget", type=lambda text: Budget(**json.loads(text)), default=Budget())
    parser.add_argument("overrides", nargs="*", help="for all runs, such as train.device=cpu")
    options = parser.parse_intermixed_args()
    if options.step == "text":
        make_text(options.data, options.out, options.longest)
    else:
        {"run": run, "table": table}[options.step](options)


if __name__ == "__main__":
    main()
