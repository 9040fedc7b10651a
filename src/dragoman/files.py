"""What is asked of a file by those that have torch and those that have not."""

import hashlib
from pathlib import Path


def hash_file(path: Path) -> str:
    """SHA-256 of its bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
