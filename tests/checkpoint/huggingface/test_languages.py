"""M2M-100 and NLLB: models of several languages, beside transformers' own."""

from pathlib import Path

import pytest
import tokenizers
import torch
import transformers
from tokenizers import decoders, models, pre_tokenizers

from checkpoint.huggingface.published import SHAPE
from dragoman.checkpoint.huggingface import read_model
from dragoman.checkpoint.model import load_model
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.translator.translator import Translator
from dragoman.errors import UserError
from dragoman.text.published_tokenizer import PublishedTokenizer
from dragoman.training.import_published import import_run

LANGUAGES = ["eng_Latn", "deu_Latn", "ces_Latn"]
TEXTS = ["ab cab", "ba", "c ab abc", "acb bca cab"]


def bpe() -> tokenizers.Tokenizer:
    """As NLLB's: marks of words, merges, and the languages last."""
    names = ["<s>", "<pad>", "</s>", "<unk>", "▁", "a", "b", "c", "▁a", "ab", "▁ab", "bc"]
    merges = [("▁", "a"), ("a", "b"), ("▁", "ab"), ("b", "c")]
    made = tokenizers.Tokenizer(
        models.BPE({name: n for n, name in enumerate(names)}, merges, unk_token="<unk>", fuse_unk=True)
    )
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    made.add_special_tokens([*names[:4], *LANGUAGES])
    return made


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("m2m") / "in"
    tokenizer = bpe()
    torch.manual_seed(3)
    config = transformers.M2M100Config(
        **{**SHAPE, "vocab_size": tokenizer.get_vocab_size() + 2, "max_position_embeddings": 40},
        **{"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2},
    )
    model = transformers.M2M100ForConditionalGeneration(config).eval()
    with torch.no_grad():
        for where, parameter in model.named_parameters():
            parameter.normal_(std=0.6 if parameter.dim() > 1 else 0.1)
            parameter += parameter.dim() == 1 and "norm" in where and "weight" in where
    model.save_pretrained(directory)
    tokenizer.save(str(directory / "tokenizer.json"))
    return directory


@pytest.mark.parametrize("languages", [("eng_Latn", "deu_Latn"), ("ces_Latn", "eng_Latn")])
def test_the_same_translations(published: Path, tmp_path: Path, languages: tuple[str, str]) -> None:
    theirs = transformers.M2M100ForConditionalGeneration.from_pretrained(published).eval()
    library = tokenizers.Tokenizer.from_file(str(published / "tokenizer.json"))
    src, tgt = (library.token_to_id(name) for name in languages)
    run = import_run(published, tmp_path / "run", languages)
    ours = run.translator(device="cpu")
    assert isinstance(ours.tgt_tokenizer, PublishedTokenizer) and ours.tgt_tokenizer.forced
    order = [1, 2, 2, *(n for n in range(theirs.config.vocab_size) if n not in (1, 2))]
    search = SearchConfig(beam=1, loop_guard=False, max_ratio=0, max_extra=12)
    for text, (best, *_) in zip(TEXTS, ours.hypotheses(TEXTS, search=search), strict=True):
        ids = torch.tensor([[src, *library.encode(text, add_special_tokens=False).ids, 2]])
        said = theirs.generate(ids, forced_bos_token_id=tgt, num_beams=1, do_sample=False, max_new_tokens=9)[
            0
        ]
        found = [order[number] for number in best.tokens]
        assert found[0] == tgt
        assert said[1:].tolist()[: len(found)] == found[: len(said) - 1]
        assert ours.score([(text, "ab")])[0].tokens[0] == ours.tgt_tokenizer.forced[0]


def test_the_same_numbers(published: Path) -> None:
    theirs = transformers.M2M100ForConditionalGeneration.from_pretrained(published).eval()
    model = read_model(published, languages=("eng_Latn", "deu_Latn")).model
    order = torch.tensor([1, 2, 2, *(n for n in range(theirs.config.vocab_size) if n not in (1, 2))])
    source, target = torch.tensor([[11, 5, 7, 2], [9, 2, 0, 0]]), torch.tensor([[1, 12, 6, 8], [1, 11, 4, 3]])
    mask = source != 0
    with torch.no_grad():
        logits = model.project(model(source, mask, target))
        expected = theirs(
            input_ids=order[source], attention_mask=mask.long(), decoder_input_ids=order[target]
        ).logits[..., order]
    keep = torch.arange(len(order)) != 1
    torch.testing.assert_close(logits[..., keep], expected[..., keep], atol=2e-5, rtol=1e-5)


def test_languages_that_it_has_not(published: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--src-lang: expected one of the 3 languages.*found 'en'"):
        import_run(published, tmp_path / "run", ("en", "deu_Latn"))
    with pytest.raises(UserError, match="--tgt-lang"):
        import_run(published, tmp_path / "run", ("eng_Latn", "tgt"))


def test_a_run_keeps_its_languages(published: Path, tmp_path: Path) -> None:
    run = import_run(published, tmp_path / "run", ("eng_Latn", "ces_Latn"))
    loaded = load_model(run.directory)
    assert loaded.tgt_tokenizer.pieces(loaded.tgt_tokenizer.forced) == ["ces_Latn"]
    assert loaded.src_tokenizer.pieces(loaded.src_tokenizer.encode("ab")) == ["eng_Latn", "▁a", "b"]
    translator = Translator(loaded.model, loaded.src_tokenizer, loaded.tgt_tokenizer)
    assert translator.translate([""]) == [""]
