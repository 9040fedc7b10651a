"""Published checkpoints: Hugging Face directories as models of ours, and ours as such directories.

Import goes from a directory to a model that says the same, number for number:

    config.json ─────────▶ options of `kind: transformer`, `gpt` or `bert`
    *.safetensors ───────▶ our tensors, with the rows of embeddings in our order
    tokenizer.json, *.spm ▶ a tokenizer with our numbers (`text/published_tokenizer.py`)

Many published decoders begin with a piece that has another use too (`<pad>`, `</s>`). Ours begin with `<s>`,
which gets a copy of that row and no part in the softmax (`model.silent_bos`).
"""

from dragoman.checkpoint.huggingface.families import FAMILIES
from dragoman.checkpoint.huggingface.read import Imported, read_model
from dragoman.checkpoint.huggingface.write import export_huggingface, published_tensors

__all__ = ["FAMILIES", "Imported", "export_huggingface", "published_tensors", "read_model"]
