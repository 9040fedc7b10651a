"""Decoding speed on a CPU: our beam search beside Hugging Face `generate`, same weights, same sentences.

    dragoman train train.en train.de --out RUN model.preset=transformer-small model.position_layout=halves
    python benchmarks/decode_cpu.py RUN test.en

The run's weights are copied into MarianMT. Both translate the same sentences in the same batches of similar
length, to their natural ends; times are interleaved.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from common import interleave, median, write_table
from peers import marian_like

from dragoman.checkpoint.model import load_model
from dragoman.config import from_dict
from dragoman.data.batch import pad_sources
from dragoman.data.formats import read_lines
from dragoman.decode.search import SearchConfig, search
from dragoman.decode.translate import Translator
from dragoman.models.transformer import TransformerConfig

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
        sources = sorted(loaded.src_tokenizer.encode_batch(self.texts), key=len)
        self.batches = [sources[i : i + batch] for i in range(0, len(sources), batch)]
        self.tokens: dict[tuple[str, int], list[tuple[int, ...]]] = {}

    def ours(self, beam: int) -> float:
        settings = SearchConfig(beam=beam, max_ratio=0, max_extra=MAX_LENGTH)
        began = time.perf_counter()
        results = [search(self.model, *pad_sources(batch), settings) for batch in self.batches]
        seconds = time.perf_counter() - began
        self.tokens["ours", beam] = [best.tokens for batch in results for best, *_ in batch]
        return len(self.texts) / seconds

    def ours_from_text(self, beam: int) -> float:
        began = time.perf_counter()
        settings = SearchConfig(beam=beam, max_ratio=0, max_extra=MAX_LENGTH)
        self.translator.translate(self.texts, search=settings)
        return len(self.texts) / (time.perf_counter() - began)

    def theirs(self, beam: int, early_stopping: bool) -> float:
        began = time.perf_counter()
        rows: list[list[int]] = []
        for batch in self.batches:
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
        if early_stopping or beam == 1:  # our stop rule
            self.tokens["theirs", beam] = [tuple(row[: row.index(EOS) + 1]) for row in rows if EOS in row]
        return len(self.texts) / seconds

    def contenders(self) -> dict[str, Callable[[], float]]:
        found: dict[str, Callable[[], float]] = {}
        for beam in (4, 1):
            found[f"dragoman, beam {beam}"] = lambda beam=beam: self.ours(beam)
            found[f"dragoman from text, beam {beam}"] = lambda beam=beam: self.ours_from_text(beam)
            found[f"HF generate, beam {beam}"] = lambda beam=beam: self.theirs(beam, early_stopping=False)
        found["HF generate with our stop rule, beam 4"] = lambda: self.theirs(4, early_stopping=True)
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
        [name, f"{speed:,.1f}", f"{speed / speeds[f'HF generate, beam {name.split()[-1]}']:.2f}"]
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
        f"Median of {args.rounds} interleaved rounds over {count} sentences in batches of {args.batch} of similar "
        f"length, natural ends ({length:.1f} tokens on average), fp32, vocabulary "
        f"{contest.model.vocab.tgt_size}. «HF generate» stops by its own default rule; «with our stop rule» is "
        "`early_stopping=True`, as soon as four hypotheses have ended. «From text» includes tokenising, "
        "sorting and our own batches. The same tokens from both under the same rule: "
        f"{contest.same(4)} of {count} with beam 4, {contest.same(1)} with beam 1.\n\n"
        f"Command: `python benchmarks/decode_cpu.py RUN {args.test.name}`",
    )


if __name__ == "__main__":
    main()
