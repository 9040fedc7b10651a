"""Fields of a run by the names that people try first: `lr`, `epochs`, `--device`."""

USUAL_NAMES = {
    **dict.fromkeys(("learning_rate", "lr", "rate"), "optim.rate"),
    **dict.fromkeys(("epochs", "num_epochs", "max_epochs"), "train.max_epochs"),
    **dict.fromkeys(("updates", "steps", "max_steps", "max_updates"), "train.max_updates"),
    **dict.fromkeys(("batch", "batch_size", "batch_tokens"), "train.batch_tokens"),
    **dict.fromkeys(("layers", "num_layers"), "model.num_layers"),
    **dict.fromkeys(("heads", "num_heads"), "model.num_heads"),
    **dict.fromkeys(("dim", "hidden", "hidden_size", "model_dim"), "model.model_dim"),
    **dict.fromkeys(("vocab", "vocab_size"), "tokenizer.vocab_size"),
    **dict.fromkeys(("gpu", "cuda", "device"), "train.device"),
    **dict.fromkeys(("early_stopping", "patience"), "train.patience"),
    **dict.fromkeys(("max_minutes", "minutes", "time"), "train.max_minutes"),
    **dict.fromkeys(("src_lang", "source_lang", "src"), "data.src_lang"),
    **dict.fromkeys(("tgt_lang", "target_lang", "tgt"), "data.tgt_lang"),
    "preset": "model.preset",
    "dropout": "model.dropout",
    "warmup": "schedule.warmup",
    "metric": "train.metric",
    "label_smoothing": "objective.label_smoothing",
    "beam": "search.beam",
    "seed": "seed",
}
EXAMPLE_VALUES = {
    "optim.rate": "0.001",
    "model.preset": "lstm",
    "model.dropout": "0.2",
    "train.device": "cpu",
    "train.metric": "bleu",
    "data.src_lang": "en",
    "data.tgt_lang": "de",
    "objective.label_smoothing": "0.1",
}
"""A value for an example of a field; the others take whole numbers."""
