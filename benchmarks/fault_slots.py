"""Where commands read files and directories, and what they find there."""

import gzip
import io
import json

import numpy as np

_QUICK = (
    "tokenizer.vocab_size=300 train.device=cpu train.max_updates=1 model.num_layers=1 model.model_dim=16 "
    "model.num_heads=2 model.ff_dim=32 --dry-run -q --out runs/x"
)
_VECTORS = (
    "train.device=cpu train.max_updates=1 model.num_layers=1 model.model_dim=16 model.num_heads=2 "
    "model.ff_dim=32 --dry-run -q --out runs/x"
)


def _array(values: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, values, allow_pickle=True)  # arrays of objects are there to be refused
    return file.getvalue()


FILES: dict[str, bytes | None] = {
    "missing": None,
    "empty": b"",
    "blank lines": b"\n\n \n\t\n",
    "one line": b"a\n",
    "no last newline": b"red cat\nblue dog",
    "other count": b"red cat\n" * 7,
    "binary": bytes(range(256)) * 40,
    "NUL": b"red cat\n" + b"a\0b\n" * 20,
    "not UTF-8": b"red cat\n" + "käse\n".encode("latin-1") * 20,
    "UTF-16": ("red cat\n" * 30).encode("utf-16"),
    "mark of byte order": "\ufeffred cat\n".encode() * 20,
    "surrogates": b"\xed\xa0\x80\n" * 20,
    "long line": b"word " * 1000 + b"\n",
    "gzip": gzip.compress(b"red cat\n" * 50),
    "cut gzip": gzip.compress(b"red cat\n" * 50)[:-9],
    "JSON": json.dumps({"a": [1, 2, {"b": None}]}).encode(),
    "JSON lines": b'{"src": "a", "tgt": 3}\n{"src": 1}\n[]\nnull\n',
    "deep JSON": b"[" * 3000,
    "XML": b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><tmx><body><tu>&b;</tu></body></tmx>",
    "zip": b"PK\x03\x04" + bytes(60),
    "table": b'a\tb\tc\n"x\ty\n\t\t\t\t\n',
    "tabs": b"\t\n" * 30,
    "turns": b'red __eou__ blue\n__eou__\n__eou__ __eou__\n{"turns": [1, null]}\n' * 9,
    "images": _array(np.zeros((60, 4, 6), np.uint8)),
    "floats": _array(np.full((40, 3), np.inf)),
    "objects": _array(np.array([None, {}])),
    "texts of NumPy": _array(np.array(["a", "1"])),
    "complex": _array(np.ones((40, 2), np.complex128)),
    "records": _array(np.zeros(9, [("a", "i4"), ("b", "f8")])),
    "other axes": _array(np.zeros((2, 0, 3, 1, 1), np.uint8)),
    "names of images": b"image,label\nnowhere.png,1\n../../a.en,2\npictures,3\n/dev/zero,4\n",
    "numbers": b"a,b,c\n" + b"1,nan,\n2,inf,x\n3,1e999,\xc2\xb2\n" * 30,
}
SLOTS = {
    "train": f"train bad.en a.de {_QUICK}",
    "train table": f"train bad.tsv {_QUICK}",
    "train csv": f"train bad.csv {_QUICK}",
    "train jsonl": f"train bad.jsonl {_QUICK}",
    "train tmx": f"train bad.tmx {_QUICK}",
    "train parquet": f"train bad.parquet {_QUICK}",
    "train po": f"train bad.po {_QUICK}",
    "train zip": f"train bad.zip {_QUICK}",
    "recipe": "train bad.yaml --out runs/x -q --dry-run",
    "valid": f"train a.en a.de --valid bad.en --valid a.de {_QUICK}",
    "pretrain": f"pretrain bad.txt {_QUICK}",
    "classify": f"finetune bad.tsv --task classify {_QUICK}",
    "tag": f"finetune bad.conll --task tag {_QUICK}",
    "span": f"finetune bad.json --task span {_QUICK}",
    "images": f"finetune bad.images.npy --task image {_VECTORS}",
    "table of images": f"finetune bad.csv --task image {_VECTORS}",
    "captions": f"finetune bad.images.npy --task caption {_VECTORS}",
    "series": f"finetune bad.csv --task series {_VECTORS}",
    "forecast": f"finetune bad.csv --task forecast {_VECTORS}",
    "forecast npy": f"finetune bad.npy --task forecast {_VECTORS}",
    "dialogues": f"train bad.dialogues {_QUICK} data.turns=2 train.metric=perplexity",
    "context": f"train bad.en a.de {_QUICK} data.context.source=1",
    "terms": f"train bad.tsv {_QUICK} objective.terms=0.5 objective.fuzzy=50",
    "predict image": "predict runs/v bad.png --device cpu",
    "predict images": "predict runs/v bad.images.npy --device cpu",
    "predict forecast": "predict runs/f bad.csv --device cpu",
    "evaluate captions": "evaluate runs/k bad.images.npy --device cpu",
    "explain image": "explain runs/v bad.png --out x.png --device cpu",
    "filter": "filter bad.en a.de -o x-clean",
    "adapt": "adapt runs/t bad.tsv --updates 1 --device cpu -q",
    "memory": "translate runs/w cat --memory bad.tsv --device cpu",
    "terms beside": "translate runs/w cat --glossary bad.tsv --device cpu",
    "address": "translate runs/t -i file://{here}/bad.txt -o x.out --device cpu",
    "translate": "translate runs/t -i bad.txt -o x.out --device cpu",
    "translate export": "translate ct2 -i bad.txt -o x.out",
    "document html": "translate runs/t bad.html -o x.html --device cpu",
    "document xliff": "translate runs/t bad.xliff -o x.xliff --device cpu",
    "document srt": "translate runs/t bad.srt -o x.srt --device cpu",
    "glossary": "translate runs/t cat --glossary bad.tsv --device cpu",
    "prefix": "translate runs/t cat --prefix @bad.txt --device cpu",
    "forbid": "translate runs/t cat --forbid @bad.txt --device cpu",
    "evaluate": "evaluate runs/t bad.en test.de --device cpu --bootstrap 0",
    "score": "score runs/t bad.tsv --device cpu",
    "align": "align runs/t bad.tsv --device cpu",
    "predict": "predict runs/c bad.tsv --device cpu",
    "generate": "generate runs/g -i bad.txt --max-tokens 3 --device cpu",
    "embed": "embed runs/c bad.txt -o x.npy --device cpu",
    "align-corpus": "align-corpus bad.en a.de -o x.links",
    "gold": "align-corpus a.en a.de --gold bad.txt -o x.links",
    "back-translate": "back-translate runs/t bad.txt -o x.bt --beam 1 --device cpu",
    "corpus": "corpus bad.en a.de",
    "tokenize": "tokenize bad.json cat",
    "verify": "verify bad.json",
}
"""Where a file is read; it is called bad."""
RUN_SLOTS = {
    "resume": "resume RUN -q",
    "translate": "translate RUN cat --device cpu",
    "generate": "generate RUN a --max-tokens 2 --device cpu",
    "score": "score RUN a.en a.de --device cpu",
    "align": "align RUN test.en test.de --device cpu",
    "evaluate": "evaluate RUN test.en test.de --device cpu --bootstrap 0",
    "explain": "explain RUN cat --device cpu",
    "compare": "compare RUN runs/l --test test.en --test test.de --device cpu",
    "predict": "predict RUN labels.tsv --device cpu",
    "embed": "embed RUN test.en -o x.npy --device cpu",
    "search-report": "search-report RUN test.en test.de --beams 1 --sentences 2 --device cpu",
    "average": "average RUN --last 2 --device cpu",
    "tune": "tune RUN --beams 1 --alphas 1 --device cpu",
    "distill": "distill RUN --out runs/x --no-train --beam 1 --device cpu -q",
    "back-translate": "back-translate RUN mono.en -o x.bt --beam 1 --device cpu",
    "export": "export RUN --out x-ct2",
    "export hf": "export RUN --to huggingface --out x-hf",
    "import": "import RUN --out runs/x",
    "finetune": f"finetune RUN labels.tsv --task classify {_QUICK}",
    "tokenize": "tokenize RUN cat",
    "verify": "verify RUN",
    "corpus": "corpus a.en a.de --tokenizer RUN",
    "adapt": "adapt RUN memory.tsv --updates 1 --device cpu -q",
    "fill": "fill RUN a --device cpu",
    "chat": "chat RUN --device cpu",
    "export onnx": "export RUN --to onnx --out x-onnx",
    "memory": "translate runs/w cat --memory RUN --device cpu",
}
"""Where a directory is read."""
OPTION_BASES = {
    **{name: text.replace("RUN", "runs/t") for name, text in RUN_SLOTS.items()},
    "predict": "predict runs/c labels.tsv --device cpu",
    "generate": "generate runs/g the --max-tokens 2 --device cpu",
    "import": "import hf --out runs/x",
    "train": f"train a.en a.de {_QUICK}",
    "pretrain": f"pretrain text.txt {_QUICK}",
    "finetune": f"finetune labels.tsv --task classify {_QUICK}",
    "filter": "filter a.en a.de -o x-clean",
    "align-corpus": "align-corpus a.en a.de -o x.links",
}
"""Commands that would do something; options are added."""
DIRECTORIES = (
    *("nowhere", "empty", "a.en", "runs", "runs/l", "runs/g", "runs/m", "runs/c", "runs/i", "ct2", "hf"),
    *("runs/v", "runs/f", "runs/k", "runs/d", "runs/w", "onnx", "file://{here}/there/t"),
    *("file://{here}/nowhere", "runs/t/data", "runs/t/checkpoints", "tokenizer", "", ".", "/dev/null"),
)
