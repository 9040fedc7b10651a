"""The command line: one file a command, each a thin call into the package."""

import time

BEGAN = time.monotonic()
"""When this process became a command. Its age would not do: a container's entry point or a scheduler may wait
for minutes before it turns into Python with `exec`."""
