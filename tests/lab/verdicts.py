"""For every experiment numbers for which its rule says yes, and numbers for which it does not."""

from dragoman.lab.statistics import Numbers

Table = dict[str, dict[str, float]]
SEEDS = (-0.01, 0.0, 0.01)


def seeded(table: Table) -> Numbers:
    """Three seeds with a little spread around each number."""
    return {
        row: {col: [value + seed for seed in SEEDS] for col, value in cells.items()}
        for row, cells in table.items()
    }


def exactly(table: Table) -> Numbers:
    return {row: {column: [value] for column, value in cells.items()} for row, cells in table.items()}


def rows(names: str, *columns: tuple[str, list[float]]) -> Table:
    """`rows("a b", ("x", [1, 2]))` has a cell x of 1 in row a and of 2 in row b; names are parted by |."""
    found: Table = {}
    for place, name in enumerate(names.split("|")):
        found[name] = {column: values[place] for column, values in columns}
    return found


def positions(wrong: float = 0.0) -> Numbers:
    from dragoman.lab.experiments.positions_by_hand import measure

    found = measure(None)  # type: ignore[arg-type]
    found["PE 3"]["dim 0"] = [found["PE 3"]["dim 0"][0] + wrong]
    return found


def masks(leak: float) -> Numbers:
    words = ("<s>", "Jane", "visits", "Africa")
    table: Table = {f"weights: {w}": {v: float(v == "<s>") for v in words} for w in words}
    table["weights: Jane"]["visits"] = leak
    table["change if the last word is another"] = {"<s>": 0, "Jane": 0, "visits": 0, "Africa": 2}
    return exactly(table)


def markov(masked: float) -> Numbers:
    two = {"down": 0.0, "please": 1.0}
    return exactly(
        {
            "order 1, my": {"directories": 0.2, "files": 0.3, "photos": 0.5},
            "order 1, ran": {"down": 0.4, "please": 0.6},
            "order 2, battery ran": {"down": 1.0, "please": 0.0},
            "order 2, program ran": two,
            "order 2, it ran": {"down": 0.5, "please": 0.5},
            "skips, battery … ran": {"down": 0.54, "please": 0.46},
            "mask, battery … ran": {"down": masked, "please": 1 - masked},
            "mask, program … ran": two,
        }
    )


def bpe(first: str) -> Numbers:
    table = {
        f"5-2-6-3, {n}": {"frequency": 9.0, "as frequent": 1.0} for n in (first, "2: es + t", "3: est + ▁")
    }
    table["once each, 1: l + o"] = {"frequency": 2.0, "as frequent": 6.0}
    return exactly({**table, "our tokenizer merges es, est, est▁ too": {"frequency": 1.0}})


def norms(layer: float) -> Numbers:
    moved = {"layer": layer, "batch": 1.4, "layer by hand": 0.0}
    return exactly(
        {"LayerNorm, sentence 1": {"feature 1": 1.0, "feature 2": -1.0}, "greatest difference": moved}
    )


def naive(apart: float) -> Numbers:
    names = ("largest, n = 10", "nearest two, n = 10", "largest, n = 1000", "nearest two, n = 1000")
    table = {
        "count: 0, 1, 2 …": (9.0, 1.0, 999.0, 1.0),
        "share of the length": (0.9, 0.1, 0.999, 0.001),
        "one circle": (1.0, 0.3, 1.0, 0.0),
        "sinusoids": (5.7, 0.9, 5.7, apart),
    }
    return exactly({kind: dict(zip(names, row, strict=True)) for kind, row in table.items()})


def elmo(models: float) -> Numbers:
    names = ("left 1", "left 2", "right 1", "right 2")
    steps = {"3 sum times γ": 1.0, "the models' own": models}
    table: Table = {row: dict.fromkeys(names, value) for row, value in steps.items()}
    return exactly({"shares": {"embedding": 0.25, "layer 1": 0.5, "layer 2": 0.25}, **table})


def one_hot(value: float) -> Numbers:
    kinds = {"product": value, "embedding": 0.5, "matrix": 0.5}
    return exactly({f"{k}: {w}": {"dim 0": v} for k, v in kinds.items() for w in ("find", "my", "files")})


def six_steps(other: float) -> Numbers:
    table: Table = {}
    for word in ("Thinking", "Machines"):
        table[f"{word}: 4 softmax"] = {"1": 0.3, "2": 0.7}
        table[f"{word}: 6 sum"] = {"1": 1.0}
        table[f"{word}: attention of the models"] = {"1": other}
    return exactly(table)


def picture(millions: float) -> Numbers:
    sizes = (6, 6, 512, 8, 64, 2048)
    table: Table = {str(place): {"size": float(size)} for place, size in enumerate(sizes)}
    return exactly({**table, "all": {"parameters": millions * 1e6}})


CURVE = ("forced|half forced|never forced", ("1", [2.0, 2.0, 3.0]), ("2", [1.0, 1.0, 2.0]))
CELLS = "tanh|GRU|LSTM|LSTM, attention"
KINDS = "sinusoidal|learned|rotary|t5"
WIDTHS = ("4", "16", "64", "256", "1024")

EXAMPLES: dict[str, tuple[Numbers, ...]] = {
    "softmax-scale": tuple(
        exactly(
            {
                "divided by √64 = 8": {"word 1": 14, "word 2": 12},
                "softmax": {"word 1": p, "word 2": 1 - p},
                "softmax without the division": {"word 1": 1, "word 2": 0},
            }
        )
        for p in (0.88, 0.5)
    ),
    "dot-variance": tuple(
        exactly({"q · k": {w: factor * int(w) for w in WIDTHS}, "q · k / √d": dict.fromkeys(WIDTHS, 1.0)})
        for factor in (1.0, 1.5)
    ),
    "saturation": tuple(
        exactly({"without the division": {"4": 0.3, "1024": left}, "divided by √d": {"4": 0.3, "1024": 0.3}})
        for left in (0.05, 0.2)
    ),
    "positions-by-hand": (positions(), positions(wrong=0.1)),
    "positions-picture": tuple(
        exactly(
            {"mean product": {str(d): v for d, v in enumerate(values)}, "spread of the products": {"0": 0.0}}
        )
        for values in ((9, 8, 7, 6, 5, 4), (9, 8, 9, 6, 5, 4))
    ),
    "search-engine": tuple(
        exactly(rows("a|b|c", ("match", [1.0, 0.5, 0.5]), ("weight", weights)))
        for weights in ([0.8, 0.1, 0.1], [0.2, 0.4, 0.4])
    ),
    "masks": (masks(0.0), masks(0.1)),
    "bpe-by-hand": (bpe("1: e + s"), bpe("1: w + e")),
    "norms-by-hand": (norms(0.0), norms(0.1)),
    "one-hot": (one_hot(0.5), one_hot(0.6)),
    "naive-positions": (naive(0.5), naive(0.01)),
    "elmo-by-hand": (elmo(1.0), elmo(1.1)),
    "self-attention-by-hand": (six_steps(1.0), six_steps(1.1)),
    "permutation": tuple(
        exactly({"difference": {"none": n, "sinusoidal": 0.3, "learned": 0.3, "rotary": 0.3, "t5": 0.3}})
        for n in (1e-15, 0.1)
    ),
    "transformer-picture": (picture(63), picture(90)),
    "markov": (markov(1.0), markov(0.6)),
    "bottleneck": tuple(
        seeded(rows("one vector|attention", ("3", [90.0, 90.0]), ("12", [20.0, far]))) for far in (80.0, 20.0)
    ),
    "alignment": tuple(
        seeded({"attention": {"on the right word": found, "by chance": 10.0}}) for found in (90.0, 30.0)
    ),
    "forgetting": tuple(
        seeded(rows(CELLS, ("6", [90.0] * 4), ("30", [*[left] * 3, 88.0]))) for left in (20.0, 89.0)
    ),
    "gradient-distance": tuple(
        seeded(rows(f"{CELLS}|Transformer", ("25", [0.0, 0.0, 0.0, kept, kept]))) for kept in (1.0, -1.0)
    ),
    "step-time": tuple(
        seeded(rows("LSTM, attention|ConvS2S|Transformer", ("16", [9.0, 3.0, t]), ("64", [9.0, 3.0, t])))
        for t in (3.0, 12.0)
    ),
    "scores": tuple(
        seeded(rows("dot|general|additive|location", ("right", [80.0, 80.0, 80.0, place])))
        for place in (40.0, 90.0)
    ),
    "scaled": tuple(
        seeded(rows("divided|not divided|not divided, smaller first queries", ("200", [1.0, plain, plain])))
        for plain in (1.5, 0.9)
    ),
    "warm-up": tuple(
        seeded(
            rows("post-norm, warm-up|post-norm, none|pre-norm, warm-up|pre-norm, none", ("9", [1.0, p, 1, 1]))
        )
        for p in (2.0, 1.0)
    ),
    "optimisers": tuple(
        seeded(rows("adam 0.003|adam 0.001|sgd 0.5|sgd 0.1", ("9", [1.0, 1.2, sgd, 3.0])))
        for sgd in (2.0, 0.9)
    ),
    "label-smoothing": tuple(
        seeded(rows("none|0.1", ("loss", [0.5, loss]), ("right", [80.0, 82.0]))) for loss in (0.8, 0.4)
    ),
    "teacher-forcing": (seeded(rows(*CURVE)), seeded(rows(CURVE[0], ("1", [2.0, 2, 2]), ("2", [1.0, 1, 1])))),
    "exposure-bias": tuple(
        seeded(rows("forced|half forced|never forced", ("forced", [1.0, 1, 1]), ("free", [free, 1.2, 1])))
        for free in (1.6, 0.9)
    ),
    "heads": tuple(seeded({"validation loss": {"1": one, "4": 1.0, "16": 1.0}}) for one in (1.5, 1.0)),
    "head-pruning": tuple(
        seeded(
            {
                "right with all heads": {"right with all heads": 90.0},
                "points lost": {"a": 0.1, "b": cost, "c": 9.0, "d": 30.0},
            }
        )
        for cost in (0.3, 5.0)
    ),
    "longer-than-training": tuple(
        seeded(rows(KINDS, ("4", [90.0] * 4), ("8", [90.0] * 4), ("12", [far] * 4), ("16", [9.0] * 4)))
        for far in (88.0, 20.0)
    ),
    "position-similarity": tuple(
        seeded(rows(KINDS, ("0", [1.0] * 4), ("1", [0.9] * 4), ("4", [far] * 4))) for far in (0.2, 0.95)
    ),
    "reader-positions": tuple(
        seeded(rows("BERT|GPT", ("1", [0.5, 0.5]), ("8", [far, far]))) for far in (0.0, 0.5)
    ),
    "order": tuple(seeded(rows("sinusoidal|none", ("right", [90.0, none]))) for none in (40.0, 88.0)),
    "search-errors": tuple(seeded({"percent of sentences": {"1": 40.0, "8": wide}}) for wide in (5.0, 45.0)),
    "beam-curse": tuple(
        seeded(rows("by log p|by log p / length", ("4", [80.0, 80.0]), ("100", [wide, 80.0])))
        for wide in (60.0, 81.0)
    ),
    "ensemble": tuple(
        seeded(rows("alone, the mean of both|together", ("right", [80.0, both]))) for both in (85.0, 79.0)
    ),
    "copy-or-reverse": tuple(
        seeded(rows("copy|reverse", ("2", [50.0, r]), ("4", [40.0, r]))) for r in (70.0, 30.0)
    ),
    "size-scaling": tuple(
        seeded({"validation loss": dict(zip(("1000", "10000", "100000"), losses, strict=True))})
        for losses in ((4.0, 2.0, 1.0), (4.0, 1.0, 2.0))
    ),
    "architectures": tuple(
        seeded(rows("LSTM, attention|ConvS2S|Transformer", ("9", [1.0, 1.0, ours]))) for ours in (0.5, 1.5)
    ),
    "subwords": tuple(
        seeded(rows("words|BPE", ("seen in training", [90.0, 90.0]), ("never seen", [0.0, bpe])))
        for bpe in (50.0, 0.0)
    ),
    "pre-training": tuple(
        seeded(rows("pre-trained|from nothing", ("50", [80.0, none]), ("200", [90.0, none])))
        for none in (60.0, 95.0)
    ),
    "reach": tuple(
        exactly(
            {
                "convolutions of width 3": {str(n): float(n) for n in range(1, 6)},
                "dilated by 2": {str(n): 2.0**n - 1 for n in range(1, 6)},
                "self-attention": {str(n): far for n in range(1, 6)},
            }
        )
        for far in (32.0, 5.0)
    ),
    "transition-matrix": tuple(
        exactly({"my": {"directories": 0.2, "files": 0.3, "photos": photos}}) for photos in (0.5, 0.9)
    ),
    "context-once": tuple(
        seeded(rows("at every step|once|attention", ("4", [60.0, 40.0, best]), ("8", [30.0, 20.0, best])))
        for best in (95.0, 25.0)
    ),
    "residual-depth": tuple(
        seeded(rows("with residual connections|without", ("1", [0.5, 0.6]), ("4", [0.4, without])))
        for without in (2.5, 0.4)
    ),
    "norm-kinds": tuple(
        seeded(rows("none|batch|layer|rms", ("200", [other, other, 1.0, 1.0]))) for other in (1.5, 1.0)
    ),
    "norm-place": tuple(
        seeded(rows("pre|post", ("1", [1.0, 1.0]), ("4", [1.0, deep]))) for deep in (2.0, 0.9)
    ),
    "cheating": tuple(
        seeded(rows("causal mask|no mask", ("forced loss", [0.8, loss]), ("words right, %", [90.0, 10.0])))
        for loss in (0.01, 0.9)
    ),
    "scheduled-sampling": tuple(
        seeded(
            rows(
                "forced, right words|scheduled, right words|forced, own words|scheduled, own words",
                ("120", [1.0, 1.1, 2.0, free]),
            )
        )
        for free in (1.4, 2.5)
    ),
    "weight-decay": tuple(
        seeded(
            rows(
                "no decay|adam 0.0001|adam 0.001|adamw 0.01|adamw 0.1", ("9", [1.0, 1.0, 1.2, ours, ours + 1])
            )
        )
        for ours in (0.8, 1.1)
    ),
    "gradient-noise": tuple(
        seeded(rows("Transformer|LSTM, attention", ("kurtosis", [ours, 3.5]))) for ours in (9.0, 2.5)
    ),
    "heads-in-turn": tuple(
        seeded({"words right": dict(zip("0123456", (90.0, 90.0, left, 60.0, 50.0, 9.0, 5.0), strict=True))})
        for left in (88.0, 60.0)
    ),
    "bpe-sizes": tuple(
        seeded({"right to the letter": {"300": 50.0, "450": middle, "800": 60.0}}) for middle in (80.0, 40.0)
    ),
    "bpe-dropout": tuple(
        seeded(rows("none|0.1", ("right to the letter, %", [50.0, right]))) for right in (70.0, 40.0)
    ),
    "alignment-error": tuple(
        seeded(rows("LSTM, attention|Transformer", ("attention", [rate, rate]), ("diagonal", [60.0, 60.0])))
        for rate in (20.0, 70.0)
    ),
    "attention-gradients": tuple(
        seeded(
            rows(
                "LSTM, attention|Transformer",
                ("rank correlation", [r, r]),
                ("same greatest word", [0.5, 0.5]),
            )
        )
        for r in (0.8, 0.2)
    ),
    "it-and-animal": tuple(
        seeded(
            {
                "percent of sentences": {
                    "pronoun right": right,
                    "best head looks at the noun meant": 95.0,
                    "mean of the heads does": 70.0,
                }
            }
        )
        for right in (99.0, 60.0)
    ),
    "data-scaling": tuple(
        seeded({"lowest validation loss": dict(zip(("50", "200", "800"), losses, strict=True))})
        for losses in ((4.0, 2.0, 1.0), (4.0, 1.0, 2.0))
    ),
    "compute-scaling": tuple(
        seeded({"width 8": {"8.00": 4.0, "9.00": 2.0}, "width 16": {"10.00": low, "11.00": low / 2}})
        for low in (1.0, 3.0)
    ),
    "layers-by-task": tuple(
        seeded(
            rows(
                "BERT, tagging|BERT, agreement|ELMo, tagging|ELMo, agreement",
                ("mean layer", [0.5, upper, 0.5, upper]),
            )
        )
        for upper in (1.5, 0.4)
    ),
    "gender-bias": tuple(
        seeded(
            rows(
                "training data|translations|translations, drawn",
                ("doctor", [75.0, doctor, 75.0]),
                ("nurse", [10.0, 0.0, 10.0]),
            )
        )
        for doctor in (100.0, 20.0)
    ),
    "hallucination": tuple(
        seeded({"invented words": {"test sentences": 5.0, "shuffled": odd, "unknown words": odd}})
        for odd in (60.0, 6.0)
    ),
    "step-memory": tuple(
        exactly(
            {
                "LSTM, no attention": {"32": 100.0, "512": 100.0},
                "ConvS2S": {"32": 100.0, "512": 100.0},
                "Transformer, fused": {"32": 100.0, "512": much},
                "Transformer, weights kept": {"32": 100.0, "512": much},
            }
        )
        for much in (900.0, 101.0)
    ),
}
