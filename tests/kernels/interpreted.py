"""Every kernel against the same in torch, in Triton's interpreter or on a GPU: run as a program, since the
interpreter is chosen when Triton is imported.

    TRITON_INTERPRET=1 python tests/kernels/interpreted.py
"""

import torch
import torch.nn.functional as F

from dragoman.decode.gpu.continuous import Continuous, Shape
from dragoman.decode.search.batch import SearchBatch
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.job import Job
from dragoman.decode.search.scorer import Scorer
from dragoman.decode.translator.translator import search
from dragoman.kernels import usable
from dragoman.kernels.beam_search import best_pieces
from dragoman.kernels.fused_norm import add_norm
from dragoman.kernels.slots import attend_memory, attend_past, embed
from dragoman.models import build_model
from dragoman.models.base import Vocab
from dragoman.models.transformer import TransformerConfig

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device=DEVICE)


def whole(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers, device=DEVICE)


def check_attention_to_the_past() -> None:
    sentences, beams, room, heads, key_dim, value_dim = 2, 2, 40, 2, 4, 3
    asked = random(sentences * beams, heads * (2 * key_dim + value_dim))
    past = random(sentences, room, beams, heads * (key_dim + value_dim))
    ancestors = torch.randint(beams, (sentences, beams, room), device=DEVICE)
    position = whole(37, 0)  # more than a block, and none before
    old = past.clone()
    found = attend_past(asked, past, ancestors, position, heads, key_dim, value_dim, 0.5)
    for row in range(sentences * beams):
        sentence, beam = divmod(row, beams)
        here = int(position[sentence])
        query, new = asked[row, : heads * key_dim], asked[row, heads * key_dim :]
        torch.testing.assert_close(past[sentence, here, beam], new)
        slots = [old[sentence, t, int(ancestors[sentence, beam, t])] for t in range(here)]
        stored = torch.stack([*slots, new])  # T G
        key, value = stored.split([heads * key_dim, heads * value_dim], dim=1)
        key, value = key.view(here + 1, heads, key_dim), value.view(here + 1, heads, value_dim)
        weights = (torch.einsum("he,the->ht", query.view(heads, key_dim), key) * 0.5).softmax(dim=1)
        expected = torch.einsum("ht,thw->hw", weights, value).flatten()
        torch.testing.assert_close(found[row], expected, atol=1e-5, rtol=1e-5)
    written = (past != old).any(dim=3)
    assert int(written.sum()) == sentences * beams, "nothing else was written"


def check_attention_to_a_memory() -> None:
    beams, heads, key_dim, value_dim = 3, 2, 4, 4
    query, memory = random(2 * beams, heads * key_dim), random(2, 36, heads * (key_dim + value_dim))
    lengths = whole(35, 1)
    found = attend_memory(query, memory, lengths, beams, heads, key_dim, value_dim, key_dim**-0.5)
    for sentence, length in enumerate(lengths.tolist()):
        key, value = memory[sentence, :length].split([heads * key_dim, heads * value_dim], dim=1)
        rows = slice(sentence * beams, (sentence + 1) * beams)
        split = [x.view(len(x), heads, -1).transpose(0, 1) for x in (query[rows], key, value)]
        expected = F.scaled_dot_product_attention(*split).transpose(0, 1).flatten(1)
        torch.testing.assert_close(found[rows], expected, atol=1e-5, rtol=1e-5)


def check_norm_and_embedding() -> None:
    for dim in (5, 64):
        x, y, weight, bias = random(3, 2, dim), random(3, 2, dim), random(dim), random(dim)
        expected = F.layer_norm(x + y, (dim,), weight, bias, 1e-5)
        torch.testing.assert_close(add_norm(x, y, weight, bias, 1e-5), expected, atol=1e-5, rtol=1e-5)
        table, places, last = random(7, dim), random(4, dim), torch.tensor([[1, 0], [6, 3]], device=DEVICE)
        vectors = (table[last] * 2.0).masked_fill((last == 0)[:, :, None], 0.0)
        expected = vectors + places[whole(3, 0)][:, None]
        torch.testing.assert_close(embed(last, whole(3, 0), table, places, 2.0, 0), expected)


def check_pieces() -> None:
    for size, count in ((11, 4), (700, 8), (9000, 10)):
        logits = random(6, size) * 3
        scores, pieces, eos = best_pieces(logits, whole(0, 5, 2), whole(3, 3, 0), 2, count, (0, 1, 2))
        expected = logits.log_softmax(dim=1)
        torch.testing.assert_close(eos, expected[:, 2], atol=1e-5, rtol=1e-5)
        expected[:, :2] = -torch.inf
        expected[:2, 2] = -torch.inf  # the first sentence is too short to end
        best = expected.topk(count, dim=1)
        torch.testing.assert_close(scores, best.values, atol=1e-5, rtol=1e-5)
        assert torch.equal(pieces, best.indices)


def check_search() -> None:
    """With all kernels together, the hypotheses of the plain search."""
    short = {"max_ratio": 1.0, "max_extra": 1, "loop_guard": False}
    searches = (
        (11, SearchConfig(beam=3, n_best=3, **short)),
        (11, SearchConfig(beam=2, stop="complete", **short)),
        (300, SearchConfig(beam=2, n_best=2, alpha=0.0, stop="bound", **short)),
        (23, SearchConfig(beam=2, stop="limit", length_penalty="gnmt", min_length=2, **short)),
    )
    for seed, (size, config) in enumerate(searches):
        torch.manual_seed(seed)
        positions = "rotary" if seed == 1 else "sinusoidal"
        wiring = TransformerConfig(num_layers=1, model_dim=16, num_heads=2, ff_dim=16, positions=positions)
        model = build_model("transformer", wiring, Vocab(size, size, shared=True))
        for parameter in model.parameters():
            parameter.data.mul_(2.0)
        model = model.to(DEVICE).eval().requires_grad_(False)
        assert usable(model.decoder.embedding.weight), "this would not run the kernels"  # type: ignore[union-attr]
        lengths = (2, 1, 1)
        sources = [torch.randint(3, size, (length,)).tolist() for length in lengths]
        jobs = [Job((*source, 2)) for source in sources]
        expected = search(Scorer([model.cpu()]), jobs, config)
        model = model.to(DEVICE)
        with torch.inference_mode():
            batch = SearchBatch.of(jobs, config, model.vocab, torch.device(DEVICE))
            found = Continuous(model, config, Shape(2, 32, 16)).run(batch)
        for best, others in zip(found, expected, strict=True):
            assert [one.tokens for one in best] == [one.tokens for one in others]
            for one, other in zip(best, others, strict=True):
                assert one.reason == other.reason
                torch.testing.assert_close(
                    torch.tensor(one.token_scores), torch.tensor(other.token_scores), atol=1e-4, rtol=1e-4
                )


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    for check in (
        check_attention_to_the_past,
        check_attention_to_a_memory,
        check_norm_and_embedding,
        check_pieces,
        check_search,
    ):
        check()
        print(check.__name__, "passed", flush=True)
