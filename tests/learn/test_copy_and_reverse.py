"""Models that know positions learn to copy and to reverse strings they have never seen, to the letter."""

import pytest
import torch

from dragoman.data.batch import collate, pad_sources
from dragoman.decode.search import SearchConfig, search
from dragoman.models import build
from dragoman.models.base import Vocab
from dragoman.models.convs2s import ConvS2SConfig
from dragoman.models.transformer import TransformerConfig
from dragoman.objectives import CrossEntropy

LETTERS, LONGEST = 12, 8
CONFIGS = {
    "transformer": TransformerConfig(
        num_layers=2, model_dim=48, num_heads=4, ff_dim=96, dropout=0.0, norm="pre"
    ),
    "convs2s": ConvS2SConfig(num_layers=3, model_dim=48, dropout=0.0),
}


def strings(count: int, generator: torch.Generator) -> list[list[int]]:
    lengths = torch.randint(1, LONGEST + 1, (count,), generator=generator).tolist()
    return [torch.randint(3, 3 + LETTERS, (n,), generator=generator).tolist() for n in lengths]


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("task", ["copy", "reverse"])
def test_learnt_to_exact_match_over_99_percent(task: str, kind: str) -> None:
    torch.manual_seed(0)
    answer = (lambda s: s) if task == "copy" else (lambda s: s[::-1])
    generator = torch.Generator().manual_seed(1)
    held_out = strings(500, generator)
    never = {tuple(s) for s in held_out if len(s) > 3}  # the shortest are too few to be kept apart
    size = 3 + LETTERS
    model = build(kind, CONFIGS[kind], Vocab(size, size, shared=True))
    optimizer, objective = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0), CrossEntropy()
    updates = 500
    for update in range(updates):
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * min((update + 1) / 50, (updates - update) / (updates - 50))
        drawn = [s for s in strings(96, generator) if tuple(s) not in never]
        loss = objective(model, collate([(s, answer(s)) for s in drawn]))
        optimizer.zero_grad()
        (loss.total / loss.count).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    for beam in (1, 4):
        found = search(model, *pad_sources(held_out), SearchConfig(beam=beam))
        said = [list(best.tokens[:-1]) for best, *_ in found]
        right = sum(ours == answer(s) for ours, s in zip(said, held_out, strict=True))
        assert right / len(held_out) > 0.99, (task, kind, beam, right)
