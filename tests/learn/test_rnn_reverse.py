"""With attention an LSTM learns to reverse strings; with one vector for the whole source it lags behind."""

import torch

from dragoman.data.batch import collate, pad_sources
from dragoman.decode.config import SearchConfig
from dragoman.decode.scorer import Scorer
from dragoman.decode.search import search
from dragoman.models import build
from dragoman.models.base import Vocab
from dragoman.models.rnn import Attention, RnnConfig
from dragoman.objectives import CrossEntropy

LETTERS, LONGEST, UPDATES, RATE = 12, 8, 300, 5e-3


def strings(count: int, generator: torch.Generator) -> list[list[int]]:
    lengths = torch.randint(1, LONGEST + 1, (count,), generator=generator).tolist()
    return [torch.randint(3, 3 + LETTERS, (n,), generator=generator).tolist() for n in lengths]


def share_reversed(attention: Attention) -> float:
    """Train from the same seed on the same strings; the share of held-out strings that come out right."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    held_out = strings(500, generator)
    never = {tuple(s) for s in held_out if len(s) > 3}  # the shortest are too few to be kept apart
    size = 3 + LETTERS
    config = RnnConfig(model_dim=48, attention=attention, dropout=0.0)
    model = build("rnn", config, Vocab(size, size, shared=True))
    optimizer, objective = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0), CrossEntropy()
    for update in range(UPDATES):
        for group in optimizer.param_groups:
            group["lr"] = RATE * min((update + 1) / 50, (UPDATES - update) / (UPDATES - 50))
        drawn = [s for s in strings(96, generator) if tuple(s) not in never]
        loss = objective(model, collate([(s, s[::-1]) for s in drawn]))
        optimizer.zero_grad()
        (loss.total / loss.count).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    found = search(Scorer([model]), *pad_sources(held_out), SearchConfig(beam=4))
    right = sum(list(best.tokens[:-1]) == s[::-1] for (best, *_), s in zip(found, held_out, strict=True))
    return right / len(held_out)


def test_attention_learns_what_one_vector_cannot_hold_in_the_same_time() -> None:
    with_attention, without = share_reversed("additive"), share_reversed("none")
    assert with_attention > 0.97
    assert with_attention - without > 0.15
