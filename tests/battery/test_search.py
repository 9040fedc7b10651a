"""Search with every model: scores are the true ones, and a batch changes no result."""

import pytest
import torch

from battery.models import CASES, make, random_batch
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.scorer import Scorer
from searching import search


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("beam", [1, 4])
def test_search_gives_true_scores_whoever_else_is_in_the_batch(name: str, beam: int) -> None:
    model = make(name)
    lengths = [3, 8, 5, 1] * 3
    src, mask, _ = random_batch(model.vocab, lengths, 1)
    config = SearchConfig(beam=beam, n_best=beam, max_ratio=1, max_extra=4)
    together = search(Scorer([model]), src, mask, config)
    for row, length in enumerate(lengths):
        (alone,) = search(Scorer([model]), src[row : row + 1, :length], mask[row : row + 1, :length], config)
        assert [h.tokens for h in alone] == [h.tokens for h in together[row]]
        for hypothesis in together[row]:
            tokens = torch.tensor(hypothesis.tokens)
            tgt_in = torch.cat([torch.tensor([model.vocab.bos_id]), tokens[:-1]])[None]
            with torch.no_grad():
                logits = model.project(model(src[row : row + 1], mask[row : row + 1], tgt_in))[0]
            expected = logits.log_softmax(-1).gather(1, tokens[:, None])[:, 0]
            torch.testing.assert_close(
                torch.tensor(hypothesis.token_scores, dtype=torch.float64), expected, atol=1e-5, rtol=0
            )
