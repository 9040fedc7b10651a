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
"""

from dragoman.autopilot.choose import Chosen, choose
from dragoman.autopilot.machine import Machine, this_machine
from dragoman.autopilot.profile import Profile
from dragoman.autopilot.profiler import Profiler

__all__ = ["Chosen", "Machine", "Profile", "Profiler", "choose", "this_machine"]
