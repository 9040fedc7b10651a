"""How quick the studio is in a browser, for a sentence of 50 × 50 pieces and 6 layers of 8 heads.

    python benchmarks/studio_page.py

A Transformer of the base size that has learnt nothing, served on loopback and opened in a headless chromium.
An interaction is timed inside the page: from the event to the frame after it.
"""

import argparse
import os
import random
import statistics
import tempfile
import threading
from pathlib import Path
from typing import Any

import uvicorn

from browser import Browser
from common import write_table
from dragoman.serve.run import listen
from dragoman.studio.app import build
from dragoman.studio.subject import Subject
from dragoman.studio.subjects import Subjects
from dragoman.training.api import train

_TIMED = """
const { set } = await import('/assets/state.js');
const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
const drawing = () => document.querySelector('.drawing svg');
const point = (share, down) => {
  const box = drawing().getBoundingClientRect();
  const [clientX, clientY] = [box.left + share * box.width, box.top + down * box.height];
  drawing().dispatchEvent(new PointerEvent('pointermove', { clientX, clientY, bubbles: true }));
};
const actions = {
  'hover a word': [{ mode: 'links', module: values[0] }, (round) => point(0.98, 0.2 + 0.02 * round)],
  'show another head': [{ mode: 'links', heads: '0.1.2' }, (round) => set({ heads: String(round % 8) })],
  'another threshold': [{ heads: '0.1.2.3' }, (round) => set({ threshold: 0.01 * round })],
  'another layer': [{ mode: 'map', heads: '' }, (round) => set({ module: values[1 + (round % 2)] })],
  'hover a cell': [{ mode: 'map' }, (round) => point(0.5, 0.3 + 0.02 * round)],
  'merge into words': [{ mode: 'map' }, (round) => set({ words: round % 2 ? '0' : undefined })],
  'all heads': [{}, (round) => set({ mode: round % 2 ? 'map' : 'grid' })],
};
const found = {};
for (const [name, [before, act]] of Object.entries(actions)) {
  set(before);
  await frame();
  await frame();
  found[name] = [];
  for (let round = 0; round < values[3]; round += 1) {
    const began = performance.now();
    act(round);
    await frame();
    found[name].push(performance.now() - began);
  }
}
return found;
"""


def make_run(folder: Path) -> tuple[Path, str]:
    """A run whose words are one piece each, and a sentence of 49 of them."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefgh", k=chance.randint(2, 7))) for _ in range(200)]
    lines = [" ".join(chance.choices(words, k=12)) for _ in range(200)]
    for side in ("en", "de"):
        (folder / f"a.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    config = {
        "data": {"train": [{"files": [str(folder / "a.en"), str(folder / "a.de")]}], "valid_size": 4},
        "tokenizer": {"kind": "word", "vocab_size": 600},
        "model": {"preset": "transformer-base"},
        "train": {"max_updates": 1, "batch_tokens": 200, "validate_sentences": 2, "device": "cpu"},
    }
    train(config, out=folder / "run", quiet=True)
    return folder / "run", " ".join(chance.choices(words, k=49))


def measure(subjects: Subjects, text: str, rounds: int) -> dict[str, Any]:
    server = uvicorn.Server(uvicorn.Config(build(subjects), ws="none", log_config=None, access_log=False))
    listening = listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/"
    subject = subjects.get("run")
    assert isinstance(subject, Subject)
    pieces = subject.source(text)
    assert len(pieces) == 49, "and </s>"
    ids = ".".join(map(str, pieces))
    try:
        with tempfile.TemporaryDirectory() as home, Browser(Path(home)) as browser:
            browser.open(f"{address}#attention?run=run&beam=1&text={text.replace(' ', '+')}&target={ids}")
            browser.until("return !!document.querySelector('#view[aria-busy=false] svg')", seconds=120)
            told = browser.run(
                """const paint = performance.getEntriesByName('first-contentful-paint')[0].startTime;
                const all = performance.getEntriesByType('resource');
                const answer = all.find((entry) => entry.name.endsWith('/attention'));
                return { paint, bytes: answer.encodedBodySize, seconds: answer.duration / 1000 };"""
            )
            layers = [f"decoder.layers.{layer}.cross_attention" for layer in (5, 1, 2)]
            told["actions"] = browser.run(_TIMED, *layers, rounds)
            return told
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=12)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run, text = make_run(Path(folder))
        found = measure(Subjects([run], device="cpu", text=text), text, args.rounds)
    rows = [["first contentful paint", f"{found['paint']:.0f}", ""]]
    for name, times in found["actions"].items():
        rows.append([name, f"{statistics.median(times):.0f}", f"{max(times):.0f}"])
    write_table(
        "studio_page",
        "The studio in a browser",
        ["", "ms, median", "ms, most"],
        rows,
        f"50 × 50 pieces, 6 layers of 8 heads; {args.rounds} rounds of each. The weights of all 144 heads of "
        f"the sentence are an answer of {found['bytes'] / 1e6:.2f} MB, which took {found['seconds']:.1f} s. "
        f"Load of the machine, of which the page has what is left: {os.getloadavg()[0]:.0f}.",
    )


if __name__ == "__main__":
    main()
