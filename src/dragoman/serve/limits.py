"""How much a client may ask for. All of it is on by default."""

from dataclasses import dataclass, fields

from dragoman.errors import UserError


@dataclass(frozen=True)
class Limits:
    body_bytes: int = 1 << 20
    document_bytes: int = 16 << 20
    header_bytes: int = 16 << 10
    """The request line and the headers, together."""
    headers: int = 100
    connections: int = 1000
    """Connections at once. Past them the one that has been idle for longest is closed."""
    bodies: int = 256
    """Requests whose body is still coming. Past them the one that takes longest is refused."""
    bodies_per_client: int = 64
    memory_bytes: int = 256 << 20
    """Bodies of all requests that are coming or in work, together."""
    texts: int = 64
    """Texts in one request."""
    characters: int = 5000
    """Characters in one text."""
    alternatives: int = 8
    written: int = 1024
    """Pieces that a language model writes for one prompt, in all its continuations together."""
    requests: int = 256
    """Requests in work at once, of all clients. One counts from when its body and its key are there."""
    requests_per_client: int = 192
    """Requests in work at once of one client: of one key, or of one address where there are no keys."""
    queue: int = 1024
    """Sentences that wait for one translator. A client that has none waiting may bring more at once."""
    wait_s: float = 8.0
    """How long a sentence may have to wait, as far as can be told. DeepL's client asks again after 10 s."""
    batch: int = 64
    """Sentences that are translated together."""
    batch_s: float = 1.0
    """How long a batch may take, as far as can be told: whoever comes next waits for its end."""
    batch_characters: int = 8192
    """Characters that are translated together."""
    batch_tokens: int = 1024
    """Pieces that are searched at once, padding counted: what a crowd may cost in memory hangs on it."""
    window_s: float = 0.004
    """How long the first sentence of a batch waits for others."""
    receive_s: float = 9.5
    """From the first byte of a request until the whole of it has to be there: within 10 s it is closed."""
    idle_s: float = 75.0
    """How long a connection without a request stays. Clients keep theirs for less (httpx for 5 s, aiohttp for
    15 s), so it is they who close it: who is closed while it asks again has lost its request."""
    send_s: float = 30.0
    """How long a client may take for each 64 KiB of its answer."""
    drain_s: float = 30.0
    """How long requests that are in work when the server is told to stop have until they are cut off."""
    request_s: float = 30.0
    document_s: float = 600.0
    documents: int = 32
    """Documents that wait, are in work or lie ready."""
    document_kept_s: float = 3600.0
    documents_bytes: int = 128 << 20
    """Bytes of all of them together, as they were sent or as they lie ready."""
    document_parts: int = 1_500_000
    """Lines, tags and pieces of text of one document. Each takes a few hundred bytes while it is in work."""
    large_documents: int = 2
    """Documents of more than 256 KiB that are read and written at once."""
    cached: int = 10_000
    """Sentences whose translation is remembered, for each translator."""
    glossaries: int = 1000
    glossary_bytes: int = 1 << 20
    """Of the terms of one dictionary: a glossary has one for each pair of languages."""
    glossary_terms: int = 20_000
    """Terms of one dictionary."""
    glossaries_bytes: int = 16 << 20
    """Of all glossaries together."""
    glossaries_terms: int = 200_000
    """Of all glossaries together."""
    corrections: int = 20_000
    """Corrections of clients that are kept, together."""
    corrections_bytes: int = 16 << 20
    """Of all of them together, with 256 bytes for each beside its texts."""
    corrections_days: float = 730.0
    """How long a correction is kept."""
    explained_pieces: int = 256
    """Pieces of a sentence whose attention is asked for, and of its translation."""
    explained_weights: int = 1_000_000
    """Weights in the answer: some 8 bytes each."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value < 0 or (value == 0 and field.name not in ("window_s", "cached", "alternatives")):
                raise UserError(f"{field.name}: expected a number above 0, found {value}")
