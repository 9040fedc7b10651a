"""Decoding speed on a CPU: our translator beside Hugging Face `generate`, same weights, same text.

    dragoman train train.en train.de --out RUN model.preset=transformer-small model.position_layout=halves
    python benchmarks/decode_cpu.py RUN test.en

The run's weights are copied into MarianMT. Both get the same text and translate it to natural ends, once as
it stands in the file and once sorted by length for both; times are interleaved.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from common import interleave, median, write_table
from dragoman.checkpoint.model import load_model
from dragoman.config import from_dict
from dragoman.data.batch import pad_sources
from dragoman.data.formats import read_lines
from dragoman.decode.config import SearchConfig
from dragoman.decode.scorer import Scorer
from dragoman.decode.search import search
from dragoman.decode.translate import Translator
from dragoman.models.transformer import TransformerConfig
from peers import marian_like

MAX_LENGTH = 100
EOS = 2


class Contest:
    """One model in two engines, and the sentences that both translate."""

    def __init__(self, run: Path, test: Path, sentences: int, batch: int) -> None:
        loaded = load_model(run)
        self.model = loaded.model
        self.config = from_dict(TransformerConfig, loaded.state["model"]["config"])
        self.marian = marian_like(self.model, self.config).eval()
        self.translator = Translator(self.model, loaded.src_tokenizer, loaded.tgt_tokenizer)
        self.texts = list(read_lines(test))[:sentences]
        self.batch = batch
        self.texts_by_length = sorted(self.texts, key=lambda text: len(loaded.src_tokenizer.encode(text)))
        self.tokens: dict[tuple[str, int], list[tuple[int, ...]]] = {}

    def batches(self, texts: list[str]) -> list[list[list[int]]]:
        sources = self.translator.src_tokenizer.encode_batch(texts)
        return [sources[i : i + self.batch] for i in range(0, len(sources), self.batch)]

    def translator_on_text(self, beam: int) -> float:
        """As a person calls it: text in any order; sorting and batches are the translator's business."""
        began = time.perf_counter()
        self.translator.translate(
            self.texts, search=SearchConfig(beam=beam, max_ratio=0, max_extra=MAX_LENGTH)
        )
        return len(self.texts) / (time.perf_counter() - began)

    def search_by_length(self, beam: int) -> float:
        settings = SearchConfig(beam=beam, max_ratio=0, max_extra=MAX_LENGTH)
        began = time.perf_counter()
        batches = self.batches(self.texts_by_length)
        results = [search(Scorer([self.model]), *pad_sources(batch), settings) for batch in batches]
        seconds = time.perf_counter() - began
        self.tokens["ours", beam] = [best.tokens for batch in results for best, *_ in batch]
        return len(self.texts) / seconds

    def generate(self, beam: int, texts: list[str], early_stopping: bool = False) -> float:
        began = time.perf_counter()
        rows: list[list[int]] = []
        for batch in self.batches(texts):
            ids, mask = pad_sources(batch)
            rows += self.marian.generate(
                input_ids=ids,
                attention_mask=mask.long(),
                num_beams=beam,
                do_sample=False,
                early_stopping=early_stopping,
                max_new_tokens=MAX_LENGTH,
            )[:, 1:].tolist()
        seconds = time.perf_counter() - began
        if texts is self.texts_by_length and (early_stopping or beam == 1):  # as in our search
            self.tokens["theirs", beam] = [tuple(row[: row.index(EOS) + 1]) for row in rows if EOS in row]
        return len(self.texts) / seconds

    def contenders(self) -> dict[str, Callable[[], float]]:
        found: dict[str, Callable[[], float]] = {}
        for beam in (4, 1):
            found[f"dragoman, beam {beam}"] = lambda beam=beam: self.translator_on_text(beam)
            found[f"HF generate, beam {beam}"] = lambda beam=beam: self.generate(beam, self.texts)
            found[f"dragoman, sorted batches, beam {beam}"] = lambda beam=beam: self.search_by_length(beam)
            found[f"HF generate, sorted batches, beam {beam}"] = lambda beam=beam: self.generate(
                beam, self.texts_by_length, early_stopping=beam > 1
            )
        return found

    def same(self, beam: int) -> int:
        return sum(
            a == b for a, b in zip(self.tokens["ours", beam], self.tokens["theirs", beam], strict=True)
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--sentences", type=int, default=256)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()

    contest = Contest(args.run, args.test, args.sentences, args.batch)
    contenders = contest.contenders()
    for contender in contenders.values():
        contender()  # warm up
    speeds = {name: median(values) for name, values in interleave(args.rounds, contenders).items()}
    rows = [
        [name, f"{speed:,.1f}", f"{speed / speeds[name.replace('dragoman', 'HF generate')]:.2f}"]
        for name, speed in speeds.items()
    ]
    count, config = len(contest.texts), contest.config
    length = sum(map(len, contest.tokens["ours", 4])) / count
    layers = f"{config.num_layers} + {config.num_decoder_layers or config.num_layers}"
    write_table(
        "decode_cpu",
        f"Decoding on a CPU, {layers} layers of width {config.model_dim}",
        ["", "sentences/s", "ratio to HF"],
        rows,
        f"Median of {args.rounds} interleaved rounds over {count} sentences, natural ends ({length:.1f} "
        f"tokens on average), fp32, vocabulary {contest.model.vocab.tgt_size}. HF translates batches of "
        f"{args.batch} in the order of the file; ours sorts by length itself. «Sorted batches»: the same "
        f"batches of {args.batch} sentences of similar length for both, and the same stop rule "
        f"(`early_stopping=True`); the tokens were the same for {contest.same(4)} of {count} sentences with "
        f"beam 4, {contest.same(1)} with beam 1.\n\n"
        f"Command: `python benchmarks/decode_cpu.py RUN {args.test.name}`",
    )


if __name__ == "__main__":
    main()
