"""A recording holds every attention of its own model, and nothing else."""

import torch

from battery.models import make, random_batch
from dragoman.probe.record import record


def test_every_layer_is_recorded_by_its_name() -> None:
    model, other = make("transformer"), make("transformer", seed=1)
    src, mask, tgt = random_batch(model.vocab, [5, 3], 4)
    with torch.no_grad(), record(model) as seen:
        model(src, mask, tgt)
        other(src, mask, tgt)
    assert sorted(seen) == [
        "decoder.layers.0.cross_attention",
        "decoder.layers.0.self_attention",
        "decoder.layers.1.cross_attention",
        "decoder.layers.1.self_attention",
        "encoder.layers.0.self_attention",
        "encoder.layers.1.self_attention",
    ]
    assert all(len(calls) == 1 for calls in seen.values())
    cross = seen["decoder.layers.1.cross_attention"][0]
    assert cross.shape == (2, 4, 4, 5)
    assert (cross[1, :, :, 3:] == 0).all()


def test_steps_are_recorded_call_by_call_and_agree_with_the_whole() -> None:
    model = make("transformer")
    src, mask, tgt = random_batch(model.vocab, [5, 3], 4)
    with torch.no_grad():
        memory = model.encode(src, mask)
        with record(model) as whole:
            model.decode(tgt, memory)
        with record(model) as steps:
            state = model.start(memory)
            for t in range(4):
                _, state = model.step(tgt[:, t], state)
    name = "decoder.layers.1.cross_attention"
    assert len(steps[name]) == 4
    torch.testing.assert_close(torch.cat(steps[name], dim=2), whole[name][0], atol=1e-12, rtol=0)


def test_nothing_is_recorded_after_the_block() -> None:
    model = make("transformer")
    src, mask, tgt = random_batch(model.vocab, [5, 3], 4)
    with torch.no_grad():
        with record(model) as seen:
            pass
        model(src, mask, tgt)
    assert seen == {}
