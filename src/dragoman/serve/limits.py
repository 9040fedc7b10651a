"""Limits on what clients may request. All are on by default."""

from dataclasses import dataclass, fields

from dragoman.errors import UserError


@dataclass(frozen=True)
class Limits:
    body_bytes: int = 1 << 20
    document_bytes: int = 16 << 20
    header_bytes: int = 16 << 10
    """Size of the request line and the headers together."""
    headers: int = 100
    connections: int = 1000
    """Number of open connections. Above it, the connection that has been idle longest is closed."""
    bodies: int = 256
    """Number of requests whose body is still being received. Above it, the oldest one is refused."""
    bodies_per_client: int = 64
    memory_bytes: int = 256 << 20
    """Size of the bodies of all requests being received or processed."""
    texts: int = 64
    """Number of texts in one request."""
    characters: int = 5000
    """Number of characters in one text."""
    alternatives: int = 8
    written: int = 1024
    """Number of pieces that a language model writes for one prompt, over all continuations."""
    requests: int = 256
    """Number of requests in progress, of all clients. A request counts once its body and its key have
    arrived."""
    requests_per_client: int = 192
    """Number of requests in progress of one client: per key, or per address if there are no keys."""
    queue: int = 1024
    """Number of sentences queued for one translator. A client with no queued sentences may exceed it once."""
    wait_s: float = 8.0
    """Longest estimated wait of a sentence. DeepL's client retries after 10 s."""
    batch: int = 64
    """Number of sentences in a batch."""
    batch_s: float = 1.0
    """Longest estimated time of a batch. New requests wait for its end."""
    batch_characters: int = 8192
    """Number of characters in a batch."""
    batch_tokens: int = 1024
    """Number of pieces that are searched at once, padding included. Peak memory depends on it."""
    window_s: float = 0.004
    """How long the first sentence of a batch waits for more."""
    receive_s: float = 9.5
    """Time for receiving a whole request, from its first byte: connections are closed within 10 s."""
    idle_s: float = 75.0
    """How long a connection without a request stays open. Clients close theirs earlier (httpx after 5 s,
    aiohttp after 15 s); a connection that the server closed first could lose a new request."""
    send_s: float = 30.0
    """Time for the client to receive each 64 KiB of its answer."""
    drain_s: float = 30.0
    """Time for requests in progress to finish when the server is stopped."""
    request_s: float = 30.0
    document_s: float = 600.0
    documents: int = 32
    """Number of documents that are queued, in progress or ready."""
    document_kept_s: float = 3600.0
    documents_bytes: int = 128 << 20
    """Size of all documents together, as uploaded or as results."""
    document_parts: int = 1_500_000
    """Number of lines, tags and pieces of text of one document. Each takes a few hundred bytes during
    translation."""
    large_documents: int = 2
    """Number of documents above 256 KiB that are read and written at once."""
    cached: int = 10_000
    """Number of cached sentence translations per translator."""
    glossaries: int = 1000
    glossary_bytes: int = 1 << 20
    """Size of the terms of one dictionary. A glossary has one dictionary per language pair."""
    glossary_terms: int = 20_000
    """Number of terms in one dictionary."""
    glossaries_bytes: int = 16 << 20
    """Size of all glossaries together."""
    glossaries_terms: int = 200_000
    """Number of terms in all glossaries together."""
    corrections: int = 20_000
    """Number of stored corrections of all clients."""
    corrections_bytes: int = 16 << 20
    """Size of all corrections, plus 256 bytes each."""
    corrections_days: float = 730.0
    """How long a correction is kept."""
    explained_pieces: int = 256
    """Largest number of pieces of a sentence, and of its translation, for an attention request."""
    explained_weights: int = 1_000_000
    """Number of attention weights in an answer, about 8 bytes each."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value < 0 or (value == 0 and field.name not in ("window_s", "cached", "alternatives")):
                raise UserError(f"{field.name}: expected a number above 0, found {value}")
