"""Translate a corpus into a file, line by line, in constant memory; resumes after an interruption.

    out.part   finished lines, in order; renamed to out at the end
    out.json   journal: inputs, progress, and hashes of the finished part and of itself

Lines are translated in chunks of a fixed size, each sorted by length. After a chunk its bytes are synced to
disk, then the journal. A killed job resumes after the last complete chunk and produces the same bytes as an
uninterrupted one. A file that was started with another model, search or text is refused.
"""

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from dragoman.checkpoint.files import from_tensors
from dragoman.checkpoint.model import model_tensors
from dragoman.config import to_dict
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.translator.translator import DEFAULT_BATCH_TOKENS, SentenceProgress, Translator
from dragoman.errors import UserError
from dragoman.files import (
    explained,
    move,
    open_regular,
    open_to_append,
    read_regular,
    replace_file,
    sync_file,
    try_lock,
)
from dragoman.system import read_at
from dragoman.text.context import in_documents, sentence_of
from dragoman.text.normalize import one_line

CHUNK = 1024
"""Lines that are sorted by length and translated together; an interruption loses at most these."""
_JOURNAL_LIMIT, _BLOCK = 1 << 20, 1 << 20
_SEAL = "seal"


@dataclass(frozen=True)
class Done:
    """SentenceProgress of the translation of a corpus."""

    lines: int = 0
    bytes: int = 0
    too_long: int = 0
    """Lines with more tokens than allowed: their translation is left empty."""
    cut_off: int = 0
    """Translations that were cut at the length limit."""
    loops: int = 0
    """Translations that were stuck in a loop and were redone."""
    finished: bool = False
    sha256: str = ""
    """Hash of the bytes; None from earlier versions."""


@dataclass(frozen=True)
class CorpusTask:
    """Definition of the job: equal tasks give equal files."""

    search: SearchConfig
    text: str
    """Identifies the lines: a hash of their file, or the fingerprint of a prepared corpus."""
    max_tokens: int
    """Longer lines are not translated, because training would drop such pairs."""
    prefix: str = ""
    """Put before every translation that is not empty."""

    def described(self, translator: Translator) -> dict[str, Any]:
        """As stored in the journal."""
        models = [_hash(model_tensors(model)) for model in translator.scorer.models]
        tokenizers = [translator.src_tokenizer.sha256, translator.tgt_tokenizer.sha256]
        own = {"text": self.text, "max_tokens": self.max_tokens, "prefix": self.prefix}
        context = {} if translator.context is None else {"context": to_dict(translator.context)}
        search = {f"search.{name}": value for name, value in to_dict(self.search).items()}
        return {"models": models, "tokenizers": tokenizers, **own, **context, **search}


def translate_corpus(
    translator: Translator,
    lines: Iterable[str],
    out: Path,
    task: CorpusTask,
    *,
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    progress: SentenceProgress | None = None,
    total: int = 0,
) -> Done:
    """Write the translation of each line to `out`; continue an interrupted call. A blank line ends a
    document, for a translator that reads the sentences before."""
    if out.is_dir():
        raise UserError(f"{out}: this is a directory; give the name of a file")
    described = json.loads(json.dumps(task.described(translator)))
    if (done := _read_journal(out, described)).finished:
        return done
    with explained(_part(out)), _open_part(out) as file:
        if (done := _read_journal(out, described)).finished:  # another process has just finished it
            _part(out).unlink(missing_ok=True)
            return done
        digest = _checked(_part(out), file.fileno(), done, _journal(out))
        file.truncate(done.bytes)  # drop everything written after the last journal entry
        _write_journal(out, described, done)
        context = 0 if translator.context is None else translator.context.source
        for chunk in _chunks(itertools.islice(in_documents(lines, context), done.lines, None)):
            begun = done.lines

            def report(now: int, _of: int, begun: int = begun) -> None:
                if progress:
                    progress(begun + now, total)

            data, done = _translate(translator, chunk, task, batch_tokens, report, done)
            file.write(data)
            digest.update(data)
            done = replace(done, sha256=digest.hexdigest())
            sync_file(file)
            _write_journal(out, described, done)
        move(_part(out), out)
        done = replace(done, finished=True)
        _write_journal(out, described, done)
    return done


def _translate(
    translator: Translator,
    texts: list[str],
    task: CorpusTask,
    batch_tokens: int,
    report: SentenceProgress,
    done: Done,
) -> tuple[bytes, Done]:
    sizes = [len(ids) for ids in translator.src_tokenizer.encode_batch(list(map(sentence_of, texts)))]
    cuts = translator.cut_source is not None
    asked = [place for place, size in enumerate(sizes) if cuts or size <= task.max_tokens]
    found = translator.hypotheses(
        [texts[place] for place in asked], search=task.search, batch_tokens=batch_tokens, progress=report
    )
    outputs = [""] * len(texts)
    reasons: list[str] = []
    for place, (best, *_) in zip(asked, found, strict=True):
        text = one_line(best.text)
        outputs[place] = f"{task.prefix}{text}" if text else ""
        reasons.append(best.finish_reason)
    data = "".join(f"{text}\n" for text in outputs).encode()
    return data, Done(
        lines=done.lines + len(texts),
        bytes=done.bytes + len(data),
        too_long=done.too_long + len(texts) - len(asked),
        cut_off=done.cut_off + reasons.count("length"),
        loops=done.loops + reasons.count("loop"),
    )


def _read_journal(out: Path, described: Mapping[str, Any]) -> Done:
    path = _journal(out)
    if not path.exists():
        if out.exists():
            raise UserError(f"{out}: there is a file already, and nothing says how it was made; remove it")
        return Done()
    with explained(path, "read"):
        raw = read_regular(path, _JOURNAL_LIMIT)
    try:
        data = json.loads(raw)
        task, done = dict(data["task"]), Done(**data["done"])
        seal = data.pop(_SEAL, None)  # earlier versions wrote none
        if set(data) != {"task", "done"} or seal not in (None, _seal_of(data)):
            raise ValueError(seal)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UserError(f"{path}: damaged; remove it and {_part(out).name} to begin anew") from None
    for name, value in described.items():
        if task.get(name) != value:
            was, now = (str(each)[:40] for each in (task.get(name), value))
            raise UserError(
                f"{out}: it was begun with {name} {was}, not {now}; go on as it was begun, choose another "
                f"file, or remove {path.name} and {(out if done.finished else _part(out)).name}"
            )
    if out.exists():
        if out.stat().st_size != done.bytes:
            raise UserError(f"{out}: changed: it has {out.stat().st_size} bytes, its journal {done.bytes}")
        with open_regular(out) as file:
            _checked(out, file.fileno(), done, path)
        if not done.finished:  # killed right after the last rename
            done = replace(done, finished=True)
            with explained(path):
                _write_journal(out, described, done)
    elif done.finished:
        raise UserError(f"{out}: gone, though {path.name} says that it was finished; remove that too")
    return done


def _write_journal(out: Path, described: Mapping[str, Any], done: Done) -> None:
    data = {"task": dict(described), "done": asdict(done)}
    sealed = data | {_SEAL: _seal_of(data)}
    replace_file(_journal(out), json.dumps(sealed, indent=1, ensure_ascii=False).encode())


def _seal_of(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()


@contextmanager
def _open_part(out: Path) -> Iterator[BinaryIO]:
    """The file of finished lines, locked by this process."""
    with open_to_append(_part(out), readable=True) as file:
        if try_lock(file.fileno()) is False:
            raise UserError(f"{out}: another process is writing it")
        yield file


def _checked(path: Path, descriptor: int, done: Done, journal: Path) -> "hashlib._Hash":
    """The hash of the finished lines, to continue with. They must be unchanged."""
    digest, read = hashlib.sha256(), 0
    while block := read_at(descriptor, min(done.bytes - read, _BLOCK), read):
        digest.update(block)
        read += len(block)
    if read < done.bytes:
        raise UserError(f"{path}: shorter than {journal.name} says; remove both to begin anew")
    if done.sha256 and digest.hexdigest() != done.sha256:
        raise UserError(
            f"{path}: changed: its SHA-256 is not the one in {journal.name}; remove both to begin anew"
        )
    return digest


def _chunks(lines: Iterator[str]) -> Iterator[list[str]]:
    while chunk := list(itertools.islice(lines, CHUNK)):
        yield chunk


def _hash(tensors: Mapping[str, Any]) -> str:
    digest = hashlib.sha256()
    for chunk in from_tensors(tensors).chunks:
        digest.update(chunk)
    return digest.hexdigest()


def _part(out: Path) -> Path:
    return out.with_name(f"{out.name}.part")


def _journal(out: Path) -> Path:
    return out.with_name(f"{out.name}.json")
