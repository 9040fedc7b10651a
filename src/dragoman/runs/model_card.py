"""The model card of an exported model (README.md), for people and model hubs."""

from pathlib import Path
from typing import Any

import yaml

from dragoman.data.formats.language_codes import NAMES, is_language
from dragoman.errors import UserError
from dragoman.plain import read_json
from dragoman.runs.directory import Run
from dragoman.runs.records import scored

_PIPELINES = {"translate": "translation", "generate": "text-generation", "read": "fill-mask"}
_LARGEST_REPORT = 16 << 20


def model_card(run: Run, checkpoint: str) -> str:
    """The card of one checkpoint of a run, as Markdown with YAML front matter."""
    data, purpose = run.config.data, str(run.config.purpose)
    named = (data.src_lang, data.tgt_lang) if data.directions is None else data.directions.languages
    languages = [code for code in named if is_language(code)]
    head: dict[str, Any] = {"library_name": "transformers", "tags": ["dragoman"]}
    if languages:
        head["language"] = list(dict.fromkeys(code.lower() for code in languages))
    if purpose in _PIPELINES:
        head["pipeline_tag"] = _PIPELINES[purpose]
    files = [Path(file).name for source in data.train for file in source.files]
    kind, _ = run.config.model_config
    lines = [
        f"# {_title(run)}",
        "",
        f"A {kind} trained with dragoman, checkpoint {checkpoint}.",
        "",
        "## Training data",
        "",
        *(f"- `{name}`" for name in files),
        "",
        "The licence of a model depends on its data. Add `license` to the head before you publish it.",
        "",
        "## Results",
        "",
        *_results(run),
        "",
        "## Use",
        "",
        *_usage(purpose),
    ]
    return f"---\n{yaml.safe_dump(head, sort_keys=True, allow_unicode=True)}---\n\n" + "\n".join(lines) + "\n"


def _title(run: Run) -> str:
    data = run.config.data
    if run.config.purpose == "translate" and is_language(data.src_lang) and is_language(data.tgt_lang):
        return f"{_name_of(data.src_lang)} to {_name_of(data.tgt_lang)}"
    return run.directory.resolve().name


def _name_of(code: str) -> str:
    return NAMES.get(code.lower(), code)


def _results(run: Run) -> list[str]:
    """Results of `dragoman evaluate`; otherwise the best value on the validation set."""
    rows = [row for path in sorted(run.directory.glob("evaluation/*/report.json")) for row in _measured(path)]
    if rows:
        return ["| test set | metric | value | signature |", "|---|---|---|---|", *rows]
    if run.best is None:
        return ["Not measured."]
    score = scored(run.best["metric"], run.best["value"])
    return [f"{score} on the validation set; no test set was measured."]


def _measured(path: Path) -> list[str]:
    try:
        report = read_json(path, _LARGEST_REPORT)
        return [
            f"| {path.parent.name} | {metric['name']} | {metric['value']:.2f} | `{metric['signature']}` |"
            for metric in report["metrics"]
        ]
    except (UserError, OSError, KeyError, TypeError, ValueError):
        return []


def _usage(purpose: str) -> list[str]:
    if purpose != "translate":
        return ["`transformers.AutoModel.from_pretrained(DIRECTORY)`"]
    return [
        "```python",
        "from transformers import AutoModelForSeq2SeqLM, AutoTokenizer",
        "",
        "tokenizer = AutoTokenizer.from_pretrained(DIRECTORY)",
        "model = AutoModelForSeq2SeqLM.from_pretrained(DIRECTORY)",
        'batch = tokenizer(["A sentence."], return_tensors="pt", padding=True)',
        "print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))",
        "```",
    ]
