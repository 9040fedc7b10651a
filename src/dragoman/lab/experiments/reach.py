"""How far a word is seen after so many layers: convolutions, dilated ones, self-attention."""

import torch

from dragoman.lab.bench import Bench
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Verdict, fails, holds
from dragoman.lab.statistics import Numbers, averages, exact
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.convs2s import ConvS2SConfig, convs2s
from dragoman.models.transformer import TransformerConfig, transformer

LAYERS, WORDS = (1, 2, 3, 4, 5), 65
CONVOLUTION, DILATED, ATTENTION = "convolutions of width 3", "dilated by 2", "self-attention"


def reach(model: EncoderDecoder) -> int:
    """The greatest distance at which a vector changes when the word in the middle is another one."""
    torch.manual_seed(1)
    ids = torch.randint(3, 60, (1, WORDS))
    other, middle = ids.clone(), WORDS // 2
    other[0, middle] = 61
    with torch.no_grad():
        mask = torch.ones_like(ids, dtype=torch.bool)
        model = model.eval().double()
        moved = (model.encode(ids, mask).hidden - model.encode(other, mask).hidden).abs().amax(dim=2)[0]
    places = (moved > 1e-12).nonzero().flatten()
    return int((places - middle).abs().max())


def measure(_bench: Bench) -> Numbers:
    vocab = Vocab(64, 64, shared=True)
    found: dict[str, dict[str, float]] = {CONVOLUTION: {}, DILATED: {}, ATTENTION: {}}
    for layers in LAYERS:
        torch.manual_seed(0)
        for name, base in ((CONVOLUTION, 1), (DILATED, 2)):
            config = ConvS2SConfig(layers, model_dim=16, dilation_base=base, dropout=0.0)
            found[name][str(layers)] = reach(convs2s(config, vocab))
        wide = TransformerConfig(layers, model_dim=16, num_heads=2, ff_dim=16, dropout=0.0)
        found[ATTENTION][str(layers)] = reach(transformer(wide, vocab))
    return exact(found)


def rule(numbers: Numbers) -> Verdict:
    """Holds if L layers of width 3 reach L words, dilated ones 2ᴸ − 1, and self-attention reaches both ends
    of the 65 words with one layer."""
    found = averages(numbers)
    wanted = {CONVOLUTION: lambda n: n, DILATED: lambda n: 2**n - 1, ATTENTION: lambda _n: WORDS // 2}
    for name, formula in wanted.items():
        reached = [found[name][str(layers)] for layers in LAYERS]
        if reached != [formula(layers) for layers in LAYERS]:
            return fails(f"{name}: {reached}")
    return holds(f"after {LAYERS[-1]} layers: 5, 31 and 32 words to each side")


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "layers", "words to each side that are seen")


EXPERIMENT = Experiment(
    name="reach",
    lecture=2,
    also=(1,),
    claim="Two words are one layer apart in self-attention, O(n) in convolutions, and O(log n) in dilated "
    "ones.",
    how="In encoders with random weights the middle one of 65 words is exchanged, and the vectors that "
    "change are counted.",
    literature="Vaswani et al. 2017, table 1; Kalchbrenner et al. 2016 for dilated convolutions.",
    measure=measure,
    rule=rule,
    figure=figure,
    cell="words to each side, by the number of layers",
)
