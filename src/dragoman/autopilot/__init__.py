"""Chooses a training configuration: pure functions of the profile of the corpus, the machine and the time.

    files ─ profiler ─▶ profile ┐
                        machine ├─ choose ─▶ sections of a configuration, and the reasons
                        minutes ┘

| file | what it chooses |
|---|---|
| `tokens.py` | kind and size of the tokenizer, one vocabulary or two |
| `cleaning.py` | which pairs are dropped, limits on the length of outputs |
| `sizes.py` | the model, and the settings of its family |
| `training.py` | batch, updates, rate, regularisation, metric, validation |

The profiler works without torch, the choice does not; so nothing is imported here.
"""
