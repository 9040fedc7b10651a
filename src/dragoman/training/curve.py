"""A learning curve in characters: for terminals and for files that are read as text."""

from collections.abc import Sequence

_HEIGHT, _WIDTH = 8, 56


def text_curve(
    points: Sequence[tuple[float, float]], height: int = _HEIGHT, width: int = _WIDTH
) -> list[str]:
    """Draw (x, y) points as lines of text, with the range of y on the left and that of x below."""
    if len(points) < 2:
        return []
    xs, ys = [x for x, _ in points], [y for _, y in points]
    low, high, first, last = min(ys), max(ys), min(xs), max(xs)
    rows = [[" "] * width for _ in range(height)]
    for x, y in points:
        column = round((width - 1) * (x - first) / ((last - first) or 1))
        row = round((height - 1) * (y - low) / ((high - low) or 1))
        rows[height - 1 - row][column] = "●"
    labels = [""] * height
    labels[0], labels[-1] = _label(high), _label(low)
    margin = max(map(len, labels))
    lines = [f"{label:>{margin}} │{''.join(row).rstrip()}" for label, row in zip(labels, rows, strict=True)]
    begin, end = f"{first:,.0f}", f"{last:,.0f}"
    lines.append(f"{'':>{margin}} └{'─' * width}")
    lines.append(f"{'':>{margin}}  {begin}{end:>{width - len(begin)}}")
    return lines


def _label(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
