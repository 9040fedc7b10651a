"""What would a billion pairs on 64 GPUs cost? A calculation, for the table in docs/scaling.md.

    python benchmarks/scaling_cost.py --rate 700000

Nothing is measured here: `--rate` is of results/train_gpu.md, the figures of a pair of results/prepare.md.
"""

import argparse

PARAMETERS = {"Transformer-base": 60_522_496, "Transformer-big": 209_125_376}
"""With a joint vocabulary of 32,000."""
TOKENS_A_SIDE = 73_658_231 / 998_966 / 2
PREPARE_SECONDS = 51.5e-6
"""A pair, on two threads."""
TEXT_BYTES = 309 * 2**20 / 1e6
INDEX_BYTES, SHARD_BYTES = 32.0, 16 + 2 * 2 * TOKENS_A_SIDE
SCRATCH_BYTES = 25 + 16
TENSORS = {"weights": 4, "Adam": 8, "moving average": 4}
"""Bytes a parameter in a checkpoint."""


def row(name: str, base: str, big: str, from_: str) -> str:
    return f"| {name} | {base} | {big} | {from_} |"


def table(options: argparse.Namespace) -> list[str]:
    targets = options.pairs * (TOKENS_A_SIDE + 1)
    updates = targets / (options.gpus * options.batch)
    cells: dict[str, list[float]] = {}
    for name, parameters in PARAMETERS.items():
        rate = options.rate * PARAMETERS["Transformer-base"] / parameters
        seconds = options.batch / rate
        volume = 2 * (options.gpus - 1) / options.gpus * 4 * parameters
        hours = targets / (options.gpus * rate * options.efficiency) / 3600
        cells[name] = [rate, seconds, volume, volume / options.link, hours, hours * options.gpus, parameters]
    base, big = cells.values()
    checkpoint = [each[6] * sum(TENSORS.values()) / 1e9 for each in (base, big)]
    cost = [each[5] * options.price for each in (base, big)]
    share = f"assumed: {options.efficiency:.0%} of it on {options.gpus}"
    return [
        "| | Transformer-base | Transformer-big | from |",
        "|---|---:|---:|---|",
        row("target tokens/s, one GPU", f"{base[0]:,.0f}", f"{big[0]:,.0f}", "given; big: by its parameters"),
        row("target tokens of an epoch", f"{targets:.3g}", f"{targets:.3g}", "prepare.md"),
        row("updates of an epoch", f"{updates:,.0f}", f"{updates:,.0f}", f"{options.batch:,} tokens a GPU"),
        row("an update, computing", f"{1e3 * base[1]:.0f} ms", f"{1e3 * big[1]:.0f} ms", "the rate"),
        row("gradients, in and out of a GPU", f"{base[2] / 1e6:,.0f} MB", f"{big[2] / 1e6:,.0f} MB", "ring"),
        row(
            "the same on the link",
            f"{1e3 * base[3]:.0f} ms",
            f"{1e3 * big[3]:.0f} ms",
            f"assumed: {options.link / 1e9:g} GB/s",
        ),
        row("**hours of an epoch**", f"**{base[4]:.2f}**", f"**{big[4]:.2f}**", share),
        row("**GPU-hours of an epoch**", f"**{base[5]:.0f}**", f"**{big[5]:.0f}**", ""),
        row("cost of an epoch", f"{cost[0]:,.0f}", f"{cost[1]:,.0f}", f"{options.price:g} a GPU-hour"),
        row("a checkpoint", f"{checkpoint[0]:.2f} GB", f"{checkpoint[1]:.2f} GB", "16 bytes a parameter"),
    ]


def disk(options: argparse.Namespace) -> list[str]:
    """Gigabytes and hours before the first update."""
    sizes = {
        "text": TEXT_BYTES,
        "shards": SHARD_BYTES,
        "index": INDEX_BYTES,
        "while preparing, besides": SCRATCH_BYTES,
    }
    told = [f"{name}: {each * options.pairs / 1e9:,.0f} GB" for name, each in sizes.items()]
    return [*told, f"preparing: {PREPARE_SECONDS * options.pairs / 3600:.1f} h on two threads"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=float, required=True, help="target tokens/s of Transformer-base")
    parser.add_argument("--pairs", type=float, default=1e9)
    parser.add_argument("--gpus", type=int, default=64)
    parser.add_argument("--batch", type=int, default=25_000, help="target tokens of a GPU and an update")
    parser.add_argument("--link", type=float, default=50e9, help="bytes/s in and out of a GPU")
    parser.add_argument("--efficiency", type=float, default=0.7, help="of the rate, with all GPUs")
    parser.add_argument("--price", type=float, default=3.0, help="of a GPU-hour, in any currency")
    options = parser.parse_args()
    print("\n".join([*table(options), "", *disk(options)]))


if __name__ == "__main__":
    main()
