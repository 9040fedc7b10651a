"""What a model can do beside the contract of `models/base.py`.

Every model configuration has a property `abilities`, and every model keeps that value. Training, search and
heads ask it, and never which model it is.
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
    """It takes batches without padding, whose sequences lie one after another (`packed`)."""
    graph_capture: bool = False
    """Forward and backward pass on batches of one shape can be captured as a CUDA graph."""
    step_gradients: bool = False
    """Gradients can go back through `step`. Many decoders overwrite their own buffers at every step."""
    reads_in_decoder: bool = False
    """Its decoder reads the source itself (`read_memory`): source and target are one sequence."""
    continues_source: bool = False
    """The source is what stands before the target, so earlier lines of a text can be the source."""
    carries_state: bool = False
    """The state of its decoder can go on from one block of text to the next (`carry`)."""
    separates_dropout: bool = False
    """Its decoder gives its output before and after the last dropout (`twice`)."""
    predicts_masked: bool = False
    """It reads both sides of a masked piece, and two segments (BERT)."""
    reads_both_ways: bool = False
    """It is a language model from either side (`both_ways`, ELMo)."""
    reads_by_segment: bool = False
    """Segments say how much of a text each piece may see (`read_text`, UniLM)."""
    needs_spelling: bool = False
    """It has to know how the pieces of its vocabulary are spelt (`spell`)."""
    pooling: Pooling = "mean"
    """How a head makes one vector of a sequence where the task does not say."""
    block_marks: int | None = None
    """Positions that a block of text takes beside its pieces; None where positions are not limited."""
    max_length: int | None = None
    """Positions that there are; None where there is no limit."""
