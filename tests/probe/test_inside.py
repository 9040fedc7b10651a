"""What is seen inside a pair: the true weights of every model, however the hypothesis was found."""

import pytest
import torch

from battery.models import CASES, WITHOUT_ATTENTION, make
from dragoman.data.batch import collate
from dragoman.decode.search.scorer import Scorer
from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder
from dragoman.probe.attention_steps import six_steps, steps_of
from dragoman.probe.inside import Inside, look_inside
from dragoman.probe.record import record
from dragoman.probe.vectors import vectors_of

SRC, TGT = [5, 9, 4, 11, 7], [8, 3, 12, 6]
MULTI_HEAD = [name for name in CASES if name.startswith("transformer") and "+" not in name]


def seen_step_by_step(model: EncoderDecoder) -> dict[str, torch.Tensor]:
    """The decoder's weights as a search of three equal beams sees them; those of the first beam."""
    batch = collate([(SRC, TGT)])
    with torch.no_grad():
        state = model.start(model.encode(batch.src_ids, batch.src_mask)).expand(3)
        with record(model) as seen:
            for last in batch.tgt_in[0]:
                _, state = model.step(last.expand(3), state)
    width = max(weights.size(-1) for calls in seen.values() for weights in calls) if seen else 0
    found = {}
    for name, calls in seen.items():
        # A row a beam, or beams as queries; of UniLM, the piece and not the blank behind it.
        rows = [w[:1, :, :1] for w in calls]
        grown = [torch.nn.functional.pad(row, (0, width - row.size(-1))) for row in rows]
        found[name] = torch.cat(grown, dim=2)[0]
    return found


def check(seen: Inside) -> None:
    for each in seen.attentions:
        rows, columns = seen.labels(each.kind)
        assert each.weights.shape[1:] == (len(rows), len(columns)), each.module
        torch.testing.assert_close(each.weights.sum(dim=-1), torch.ones_like(each.weights[:, :, 0]))
        ahead = each.weights[:, :, len(seen.src) :] if each.kind == "joint" else each.weights
        if each.kind in ("decoder", "joint"):
            assert (ahead.triu(1) == 0).all()


@pytest.mark.parametrize("name", CASES)
def test_every_attention_of_every_model(name: str) -> None:
    model = make(name)
    seen = look_inside(model, SRC, TGT)
    check(seen)
    assert bool(seen.attentions) is (name not in WITHOUT_ATTENTION)
    with torch.no_grad():
        scores, _ = Scorer([model]).forced(collate([(SRC, TGT)]))
    assert seen.token_scores == pytest.approx(scores[0].tolist(), abs=1e-9)
    for number, (token, options) in enumerate(zip(seen.tgt_ids, seen.alternatives, strict=True)):
        assert options[0][1] >= seen.token_scores[number] - 1e-12
        assert dict(options).get(token, seen.token_scores[number]) == seen.token_scores[number]
    for module, weights in seen_step_by_step(model).items():
        whole = seen.named(module).weights
        torch.testing.assert_close(weights[..., : whole.size(-1)], whole, atol=1e-12, rtol=0)


def test_kinds_and_labels() -> None:
    seen = look_inside(make("transformer-dk-dv"), SRC, TGT)
    assert [(each.kind, each.layer) for each in seen.attentions] == [
        ("encoder", 1),
        ("encoder", 2),
        ("decoder", 1),
        ("cross", 1),
    ]
    steps = ("1 › 8", "8 › 3", "3 › 12", "12 › 6", "6 › 2")
    assert seen.labels("cross") == (steps, ("5", "9", "4", "11", "7", "2"))
    assert seen.written == ("8", "3", "12", "6", "2")
    assert seen.of("cross")[0].mean.shape == (5, 6)
    with pytest.raises(UserError, match=r"no 'decoder\.x'; it has encoder\.layers\.0"):
        seen.named("decoder.x")
    convolved = look_inside(make("convs2s"), SRC, TGT)
    assert [(each.kind, each.layer) for each in convolved.attentions] == [
        ("cross", 1),
        ("cross", 2),
        ("cross", 3),
    ]


@pytest.mark.parametrize("name", MULTI_HEAD)
def test_the_vectors_give_the_weights_and_the_output_again(name: str) -> None:
    model = make(name)
    outputs = {}
    hooks = [
        module.register_forward_hook(lambda _m, _i, out, name=name: outputs.update({name: out[0]}))
        for name, module in model.named_modules()
        if name.endswith("attention")
    ]
    vectors = vectors_of(model, SRC, TGT)
    for hook in hooks:
        hook.remove()
    seen = look_inside(model, SRC, TGT)
    for each in seen.attentions:
        if each.kind == "copy":
            continue  # it has no values
        own = vectors[each.module]
        torch.testing.assert_close(own.scores().softmax(dim=-1), each.weights, atol=1e-12, rtol=0)
        for position in (0, len(each.weights[0]) - 1):
            joined = []
            for head in range(len(each.weights)):
                steps = steps_of(own, head, position)
                assert steps.weights == pytest.approx(each.weights[head, position].tolist(), abs=1e-12)
                joined.append(torch.from_numpy(steps.summed))
            with torch.no_grad():
                out = own.out(torch.cat(joined))
            torch.testing.assert_close(out, outputs[each.module][position], atol=1e-10, rtol=0)


def test_the_textbooks_example_in_six_steps() -> None:
    """Scores 112 and 96, d_k 64: 14 and 12, then 0.88 and 0.12."""
    query, keys = [1.0] * 64, [[1.75] * 64, [1.5] * 64]
    steps = six_steps(query, keys, [[1.0, 0.0], [0.0, 10.0]])
    assert steps.scores.tolist() == [112, 96]
    assert steps.scaled.tolist() == [14, 12]
    assert [round(weight, 2) for weight in steps.weights] == [0.88, 0.12]
    assert steps.weighted[0].tolist() == [steps.weights[0], 0]
    assert steps.summed == pytest.approx([0.8808, 1.1920], abs=1e-4)
    hidden = six_steps(query, keys, [[1.0], [2.0]], visible=[True, False])
    assert hidden.weights.tolist() == [1, 0] and hidden.summed.tolist() == [1]


def test_steps_that_are_not_there() -> None:
    vectors = vectors_of(make("transformer"), SRC, TGT)["encoder.layers.0.self_attention"]
    with pytest.raises(UserError, match="head: 4 is not there; they are numbered from 0 to 3"):
        steps_of(vectors, 4, 0)
    with pytest.raises(UserError, match="position: 6"):
        steps_of(vectors, 0, 6)
