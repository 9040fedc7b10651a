"""A Transformer of one's own configuration, drawn with the sizes and parameters of its parts."""

from typing import TYPE_CHECKING

from dragoman.config import apply_overrides
from dragoman.errors import UserError
from dragoman.evaluate.plot import COLOURS, canvas, figure_files
from dragoman.lab.bench import Bench
from dragoman.lab.experiment import Experiment, Pictures, Verdict, fails, holds, holds_for
from dragoman.lab.statistics import Numbers, averages, exact
from dragoman.models import chosen_config
from dragoman.models.base import Vocab
from dragoman.models.transformer import TransformerConfig, transformer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PIECES = 37_000
UP = {"arrowstyle": "->", "color": "0.4"}


def measure(bench: Bench) -> Numbers:
    section = apply_overrides({"model": {"kind": "transformer"}}, list(bench.changes))["model"]
    kind, config = chosen_config(section)
    if not isinstance(config, TransformerConfig):
        raise UserError(f"model.kind: this picture is of a transformer, found {kind}")
    model = transformer(config, Vocab(PIECES, PIECES, shared=True))
    sizes: dict[str, int] = {}
    for name, weight in model.named_parameters():
        half, *rest = name.split(".")
        part = "embedding" if "embedding" in name else f"{half} {rest[2] if rest[0] == 'layers' else rest[0]}"
        sizes[part] = sizes.get(part, 0) + weight.numel()
    sizes["all"] = sum(sizes.values())
    found = {part: {"parameters": float(count)} for part, count in sizes.items()}
    shape = {"encoder layers": config.num_layers, "decoder layers": config.decoder_layers,
             "width": config.model_dim, "heads": config.num_heads, "width of a head": config.heads[1],
             "feed-forward width": config.ff_dim}  # fmt: skip
    return exact(found | {name: {"size": float(value)} for name, value in shape.items()})


def rule(numbers: Numbers) -> Verdict:
    """Holds if the model has 6 + 6 layers, width 512, 8 heads of 64, feed-forward layers of 2048, and
    between 60 and 66 million parameters. A model of one's own is only described."""
    found = averages(numbers)
    sizes = [int(cells["size"]) for cells in found.values() if "size" in cells]
    millions = found["all"]["parameters"] / 1e6
    if sizes != [6, 6, 512, 8, 64, 2048]:
        return holds_for(f"another configuration: {millions:.2f} million parameters")
    told = f"{millions:.2f} million parameters with {PIECES:,} pieces"
    return holds(told) if 60 <= millions <= 66 else fails(told)


def figure(numbers: Numbers) -> Pictures:
    found = averages(numbers)
    with canvas() as figure_of:
        drawn = figure_of(figsize=(7.6, 5.0), dpi=160, layout="constrained")
        axes = drawn.add_subplot()
        axes.set_axis_off()
        axes.set_xlim(0, 10)
        axes.set_ylim(-0.5, 8.2)
        for half, left in (("encoder", 0.6), ("decoder", 5.4)):
            layers, part = int(found[f"{half} layers"]["size"]), _parts(found, half)
            axes.text(left + 2, 7.8, f"{half}: {layers} layers", ha="center", fontsize=11)
            for row, (name, count) in enumerate(part):
                text = f"{name}, add and norm\n{count / max(1, layers):,.0f} × {layers}"
                _box(axes, left, 1.8 + row * 1.6, text, row + 1)
                axes.annotate("", (left + 2, 1.75 + row * 1.6), (left + 2, 1.1 + row * 1.6), arrowprops=UP)
            _box(axes, left, 0.1, f"embedding\n{PIECES:,} × {found['width']['size']:,.0f}", 0)
        axes.annotate("", (7.4, 6.55), (7.4, 5.9), arrowprops=UP)
        _box(axes, 5.4, 6.6, f"linear and softmax\n{found['width']['size']:,.0f} × {PIECES:,}", 0)
        axes.annotate("", (5.3, 3.8), (4.7, 3.8), arrowprops=UP)
        axes.text(5, 3.95, "K, V", ha="center", fontsize=8)
        heads = f"{found['heads']['size']:.0f} heads of {found['width of a head']['size']:.0f}"
        total = (
            f"{found['all']['parameters']:,.0f} parameters; both halves and the output share the embedding"
        )
        axes.text(5, -0.45, f"{heads}; {total}", ha="center", fontsize=8)
        return figure_files(drawn)


def _parts(found: dict[str, dict[str, float]], half: str) -> list[tuple[str, float]]:
    """The sublayers from below, each with its norm."""
    own = {
        n.split()[1]: c["parameters"] for n, c in found.items() if n.startswith(half) and "parameters" in c
    }
    parts = {n: count for n, count in own.items() if not n.endswith("_residual")}
    return [
        (
            n.replace("_", "-"),
            count + own["ff_residual" if n == "feedforward" else f"{n.split('_')[0]}_residual"],
        )
        for n, count in parts.items()
    ]


def _box(axes: "Axes", left: float, bottom: float, text: str, number: int) -> None:
    from matplotlib.patches import FancyBboxPatch

    colour = COLOURS[number % len(COLOURS)]
    axes.add_patch(
        FancyBboxPatch((left, bottom), 4, 0.8, "round,pad=0.05", facecolor=f"{colour}22", edgecolor=colour)
    )
    axes.text(left + 2, bottom + 0.4, text, ha="center", va="center", fontsize=8)


EXPERIMENT = Experiment(
    name="transformer-picture",
    lecture=1,
    also=(2, 5),
    claim="The base Transformer has 6 + 6 layers of width 512 with 8 heads of 64, and about 65 million "
    "parameters.",
    how=f"The model is made with {PIECES:,} joint pieces, and the parameters of each part are counted. With "
    "fields such as model.num_layers=2 model.model_dim=128 the picture is of that model.",
    literature="Vaswani et al. 2017, table 3: 65 million parameters.",
    measure=measure,
    rule=rule,
    figure=figure,
    cell="parameters of all layers together, or sizes",
    change="model.num_layers=2",
)
