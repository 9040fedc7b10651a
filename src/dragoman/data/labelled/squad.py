"""Questions about paragraphs in SQuAD format: {"data": [{"paragraphs": [{"context", "qas"}]}]}."""

import json
from collections.abc import Iterator
from typing import Any

from dragoman.data.formats.lines import read_chunks
from dragoman.data.labelled.example import AnswerSpan, Example
from dragoman.data.labelled.records import check_answers
from dragoman.errors import UserError


def read_squad(path: str) -> Iterator[Example]:
    try:
        data = json.loads(b"".join(read_chunks(path)))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid JSON ({error})") from None
    try:
        for article in data["data"]:
            for paragraph in article["paragraphs"]:
                for question in paragraph["qas"]:
                    yield _example(question, paragraph["context"], path)
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path}: this is not a file of questions: expected data, paragraphs, context and qas ({error})"
        ) from None


def _example(question: dict[str, Any], context: str, path: str) -> Example:
    where = f"{path}: question {question.get('id', question['question'])!r:.60}"
    answers = [
        AnswerSpan(int(answer["answer_start"]), str(answer["text"])) for answer in question.get("answers", ())
    ]
    for field, text in (("question", question["question"]), ("context", context)):
        if not isinstance(text, str) or not text.strip():
            raise UserError(f"{where}: there is no text under {field}")
    return Example((question["question"], context), check_answers(answers, context, where), where)
