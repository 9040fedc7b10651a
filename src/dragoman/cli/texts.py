"""What a command is to work on: sentences from the command line, a file or standard input, in pieces that fit
into memory, or documents. An argument that looks like a file is never translated as a sentence."""

import contextlib
import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import TypeVar

from dragoman.errors import UserError, no_such_file

T = TypeVar("T")
CHUNK = 4096
"""Sentences that are sorted by length and translated together."""


def input_lines(
    texts: list[str] | None,
    file: Path | None,
    wanted: str = "Type a sentence and press Enter.",
    blank: bool = False,
) -> Iterator[str]:
    """The texts given as arguments, else the lines of the file, else of standard input. On a terminal there
    is a prompt; `wanted` tells what to type, and empty lines are passed on only if they are `blank`."""
    if texts and file:
        raise UserError(f"--input {file}: give either a file or texts, not both")
    if texts:
        return iter(texts)
    if file:
        from dragoman.data.formats import read_lines

        return read_lines(file)
    return _prompted_lines(wanted, blank) if sys.stdin.isatty() else _stdin_lines()


def chunks(lines: Iterable[T]) -> Iterator[list[T]]:
    """Lists of lines: one by one from a terminal, otherwise many at once."""
    size = 1 if sys.stdin.isatty() else CHUNK
    iterator = iter(lines)
    while chunk := list(itertools.islice(iterator, size)):
        yield chunk


def _prompted_lines(wanted: str, blank: bool) -> Iterator[str]:
    """Lines typed at a prompt, with line editing if Python supports it. The prompt is never part of the
    output: if the output is redirected, the prompt goes to standard error."""
    print(f"{wanted} Ctrl-D ends.", file=sys.stderr, flush=True)
    if sys.stdout.isatty():
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401 (input() edits lines with it)
        ask = partial(input, "> ")
    else:
        ask = _ask_on_stderr
    with contextlib.suppress(EOFError):
        while True:
            try:
                line = ask()
            except UnicodeDecodeError:
                print("this is not valid UTF-8; try again", file=sys.stderr)
                continue
            if blank or line.strip():
                yield line
    print(file=sys.stderr)


def _ask_on_stderr() -> str:
    print("> ", end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.removesuffix("\n")


def _stdin_lines() -> Iterator[str]:
    """Only `\\n` ends a line; a trailing `\\r` and a leading BOM are dropped, as in files."""
    for number, raw in enumerate(sys.stdin.buffer, 1):
        where = f"standard input:{number}"
        if b"\0" in raw:
            raise UserError(f"{where}: NUL at byte {raw.index(0)} of the line; expected UTF-8 text")
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            found = f"0x{raw[error.start]:02X} at byte {error.start} of the line"
            raise UserError(f"{where}: not valid UTF-8 ({found})") from None
        yield line.removeprefix("\ufeff" if number == 1 else "").removesuffix("\n").removesuffix("\r")


_OFFICE = {
    **dict.fromkeys((".doc", ".dotx", ".rtf", ".pages"), "such Word files"),
    **dict.fromkeys((".ppt", ".ppsx"), "such PowerPoint files"),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "spreadsheets"),
    ".pdf": "PDF files",
    ".mobi": "such e-books",
}
_TABLES = (".tsv", ".csv", ".jsonl", ".ndjson", ".parquet")
_LINES = (".txt", ".text", ".md", ".markdown")
"""Kinds of documents that can also be read or written as one sentence per line."""


def documents_among(texts: Sequence[str], output: Path | None) -> list[tuple[Path, Path]]:
    """The documents among the arguments, all of them or none, and where each is to be written."""
    names = [text for text in texts if _is_file_name(text) or _has_suffix_of(text, output)]
    if not names:
        if output is not None:
            _check_text_output(output)
        return []
    documents = [_document(Path(name)) for name in names]
    if len(names) < len(texts):
        text = next(text for text in texts if text not in names)
        raise UserError(f"{names[0]}: a document and a text ({text!r:.40}) in one command; give one of them")
    outputs = [_output_of(path, output, several=len(documents) > 1) for path in documents]
    if len(set(outputs)) < len(outputs):
        raise UserError(f"--out {output}: two documents have the same name; translate them one by one")
    return list(zip(documents, outputs, strict=True))


def check_input(file: Path) -> None:
    """`--input` has one sentence per line. In other files, lines have a different meaning."""
    suffix = _bare_suffix(file)
    if suffix in _OFFICE:
        raise _unsupported(file, suffix)
    from dragoman.data.documents import DOCUMENTS

    if suffix in DOCUMENTS and suffix not in _LINES:
        raise UserError(
            f"--input {file}: a line of this file is not a sentence; translate it as a document: "
            f"dragoman translate RUN {file} --out FILE"
        )
    if suffix in _TABLES:
        raise UserError(
            f"--input {file}: a line of this table is not a sentence; write the column with the text to a "
            "file of its own"
        )


def _output_of(document: Path, output: Path | None, several: bool) -> Path:
    """The path of a translated document: `output` itself, or a file of the same name in that directory."""
    if output is None:
        raise UserError(f"{document}: a document is translated into a file; name it with --out")
    if several and not output.is_dir():
        raise UserError(
            f"--out {output}: several documents are written into a directory; name one that exists"
        )
    written = output / document.name if output.is_dir() else output
    if written.exists() and written.samefile(document):
        raise UserError(f"--out {output}: this would replace {document} itself; choose another name")
    return written


def _is_file_name(text: str) -> bool:
    """Whether a text is a file, or looks like the name of one: no spaces, and either the suffix of a document
    or a path separator and any suffix."""
    if not text or "\n" in text or "://" in text:
        return False
    try:
        if Path(text).is_file():
            return True
    except OSError:  # too long for a name
        return False
    if any(sign.isspace() for sign in text):
        return False
    from dragoman.data.documents import DOCUMENTS

    suffix = PurePath(text).suffix.lower()
    if suffix in DOCUMENTS or suffix in _OFFICE or suffix in _TABLES:
        return True
    return len(suffix) > 1 and suffix[1:].isalnum() and ("/" in text or "\\" in text)


def _has_suffix_of(text: str, output: Path | None) -> bool:
    """Whether `--out` shows that a word is meant as a file: `app.xyz --out app.de.xyz`."""
    suffix = "" if output is None else output.suffix.lower()
    if "://" in text or any(map(str.isspace, text)):
        return False
    return suffix[1:].isalnum() and text.lower().endswith(suffix)


def _document(path: Path) -> Path:
    from dragoman.data.documents import DOCUMENTS

    if not path.is_file():
        missing = no_such_file(path)
        raise UserError(f"{missing}{'' if '; ' in str(missing) else _AS_TEXT}")
    suffix = path.suffix.lower()
    if suffix in DOCUMENTS:
        return path
    if suffix in _OFFICE:
        raise _unsupported(path, suffix)
    if suffix in _TABLES:
        raise UserError(
            f"{path}: of tables, TSV and JSONL can be translated; write the column with the text to a file "
            "and give it with --input"
        )
    raise UserError(
        f"{path}: not a document of a known kind ({', '.join(DOCUMENTS)}); for a file with one sentence a "
        f"line use  --input {path}"
    )


_AS_TEXT = "; a text that looks like a file name can be given on standard input"


def _unsupported(path: Path, suffix: str) -> UserError:
    from dragoman.data.documents import ADVICE, DOCUMENTS

    advice = ADVICE.get(suffix, f"save it as one of {', '.join(DOCUMENTS)}")
    return UserError(f"{path}: {_OFFICE[suffix]} are not supported; {advice}")


def _check_text_output(output: Path) -> None:
    from dragoman.data.documents import DOCUMENTS

    suffix = output.suffix.lower()
    if suffix in _OFFICE or (suffix in DOCUMENTS and suffix not in (*_LINES, *_TABLES)):
        raise UserError(
            f"--out {output}: sentences are written one a line, and {suffix} is another kind of file; name "
            "the document to translate after the run, or write to a .txt file"
        )


def _bare_suffix(path: Path) -> str:
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()
