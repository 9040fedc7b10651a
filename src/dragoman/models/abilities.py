"""What a model can do beyond the contract of `models/base.py`.

Every model configuration has a property `abilities`, and every model keeps its value. Training, search and
heads look at it, and never at the class of a model.
"""

from dataclasses import dataclass

from dragoman.data.labelled.config import Pooling


@dataclass(frozen=True)
class Abilities:
    writes: bool = True
    """It has a decoder. BERT and ELMo read and do not write."""
    counts: bool = False
    """It is fitted by counting (`count`), not by gradients."""
    packs: bool = False
    """It takes packed batches, which have no padding (`packed`)."""
    graph_capture: bool = False
    """Forward and backward pass on batches of one shape can be captured as a CUDA graph."""
    step_gradients: bool = False
    """Gradients can flow through `step`. Many decoders overwrite their buffers at every step."""
    reads_in_decoder: bool = False
    """Its decoder reads the source itself (`read_memory`): source and target are one sequence."""
    continues_source: bool = False
    """The source precedes the target, so earlier lines of a text can be the source."""
    carries_state: bool = False
    """The state of its decoder can be carried from one block of text to the next (`carry`)."""
    separates_dropout: bool = False
    """Its decoder gives its output before and after the last dropout (`twice`)."""
    predicts_masked: bool = False
    """It reads both sides of a masked piece, and two segments (BERT)."""
    reads_both_ways: bool = False
    """It is a language model from either side (`both_ways`, ELMo)."""
    reads_by_segment: bool = False
    """Segments say what each piece may see (`read_text`, UniLM)."""
    copies: bool = False
    """It copies pieces of its source, and has to know which pieces both sides have (`match_pieces`). It gives
    log p in place of vectors to be projected."""
    vectors: int | None = None
    """Whether it reads vectors instead of pieces, and how many numbers each has (ViT)."""
    needs_spelling: bool = False
    """It needs the spelling of its vocabulary (`spell`)."""
    pooling: Pooling = "mean"
    """How a head pools a sequence, unless the task says."""
    block_marks: int | None = None
    """Extra positions of a block of text beside its pieces; None if positions are not limited."""
    max_length: int | None = None
    """The number of positions; None if there is no limit."""
