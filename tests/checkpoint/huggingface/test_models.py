"""Published models as ours, and ours as published ones: the same logits, the same translations, both ways."""

import copy

import pytest
import torch
import transformers

from checkpoint.huggingface.conftest import Pair, numbers_in
from checkpoint.huggingface.published import save
from dragoman.checkpoint.huggingface import export_huggingface
from dragoman.checkpoint.model import load_model, model_tensors
from dragoman.decode.rules.constraints import constraints_for
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.scorer import Scorer
from dragoman.decode.translator.translator import Translator
from dragoman.models import build_model
from dragoman.models.base import Vocab
from dragoman.models.presets import preset
from dragoman.training.import_published import import_run
from searching import search

PAD, BOS, EOS = 0, 1, 2
LENGTHS = [9, 4, 1, 7]


def batch(size: int, count: int = len(LENGTHS)) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    lengths = torch.tensor(LENGTHS).repeat(count // len(LENGTHS))
    mask = torch.arange(max(LENGTHS) + 1)[None] <= lengths[:, None]
    src = torch.randint(3, size, mask.shape, generator=generator)
    src[torch.arange(count), lengths] = EOS
    tgt = torch.randint(3, size, (count, 8), generator=generator)
    tgt[:, 0] = BOS
    return src.masked_fill(~mask, PAD), mask, tgt


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["fp32", "fp64"])
def test_the_same_logits(pair: Pair, dtype: torch.dtype) -> None:
    model, theirs = copy.deepcopy(pair.ours.model).to(dtype), copy.deepcopy(pair.theirs).to(dtype)
    src, mask, tgt = batch(model.vocab.src_size)
    with torch.no_grad():
        logits = model.project(model(src, mask, tgt))
        expected = theirs(
            input_ids=pair.order[src], attention_mask=mask.long(), decoder_input_ids=pair.order[tgt]
        ).logits[..., pair.order]
    # T5's norm and Marian's table of positions are in float32 there, whatever the model is in.
    single = {"t5": 1e-5, "t5-v1.1": 1e-5, "marian": 1e-6, "pegasus": 1e-6}
    tolerance = 1e-5 if dtype == torch.float32 else single.get(pair.name, 1e-10)
    said = [n for n in range(len(pair.order)) if n != BOS]
    torch.testing.assert_close(logits[..., said], expected[..., said], atol=tolerance, rtol=tolerance)
    assert (logits[..., BOS] < -9e3).all()


@pytest.mark.parametrize("beam", [1, 4])
def test_the_same_100_translations(pair: Pair, beam: int) -> None:
    src, mask, _ = batch(pair.ours.model.vocab.src_size, 100)
    theirs = pair.theirs.generate(
        input_ids=pair.order[src],
        attention_mask=mask.long(),
        num_beams=beam,
        do_sample=False,
        early_stopping=beam > 1,
        length_penalty=1.0,
        max_new_tokens=20,
        bad_words_ids=[[pair.theirs.config.pad_token_id]],
    )[:, 1:]
    config = SearchConfig(beam=beam, alpha=1.0, max_ratio=0, max_extra=20, stop="complete")
    found = search(Scorer([pair.ours.model]), src, mask, config)
    end = pair.theirs.config.eos_token_id
    expected = [row[: row.index(end) + 1] if end in row else row for row in theirs.tolist()]
    ended = [number for number, row in enumerate(expected) if row[-1] == end]
    lengths = {len(expected[number]) for number in ended}
    assert len(ended) > 20 and len(lengths) > 2, lengths
    for number in ended if beam > 1 else range(100):
        got = pair.order[torch.tensor(found[number][0].tokens)].tolist()
        compared = 20 if number in ended else 19  # at the limit, ours ends a sentence
        assert got[:compared] == expected[number][:compared]


def test_the_same_loss(pair: Pair) -> None:
    model = pair.ours.model
    src, mask, tgt = batch(model.vocab.src_size)
    labels = torch.cat([tgt[:, 1:], torch.full((len(tgt), 1), EOS)], dim=1)
    with torch.no_grad():
        ours = model.project(model(src, mask, tgt)).log_softmax(-1)
        ours = -ours.gather(2, labels[..., None]).mean()
        theirs = pair.theirs(
            input_ids=pair.order[src],
            attention_mask=mask.long(),
            decoder_input_ids=pair.order[tgt],
            labels=pair.order[labels],
        ).loss
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_transformers_loads_an_export(pair: Pair, tmp_path) -> None:
    out = export_huggingface(pair.ours, tmp_path / "out", beam=4)
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(out).eval()
    assert type(theirs) is type(pair.theirs)
    assert theirs.generation_config.num_beams == 4
    src, mask, tgt = batch(pair.ours.model.vocab.src_size)
    model = pair.ours.model
    order, start = numbers_in(out, len(pair.order))
    given = order[tgt]
    given[:, 0] = start
    with torch.no_grad():
        logits = model.project(model(src, mask, tgt))
        found = theirs(input_ids=order[src], attention_mask=mask.long(), decoder_input_ids=given).logits
    expected = found[..., order]
    begins_with_padding = start == order[PAD]
    said = [n for n in range(len(order)) if n != BOS and not (n == PAD and begins_with_padding)]
    torch.testing.assert_close(logits[..., said], expected[..., said], atol=1e-5, rtol=1e-5)
    assert not begins_with_padding or (expected[..., PAD] < -9e3).all()
    if "t5" not in pair.name and not begins_with_padding:
        torch.testing.assert_close(logits, expected, atol=1e-3, rtol=1e-5)
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    text = "abc d the hell"
    ids = torch.tensor([*pair.ours.src_tokenizer.encode(text), EOS])
    assert tokenizer(text).input_ids == order[ids].tolist()


def test_out_and_in_again_is_the_same(pair: Pair, tmp_path) -> None:
    out = export_huggingface(pair.ours, tmp_path / "out")
    again = load_model(import_run(out, tmp_path / "run").directory)
    assert again.state["model"] == pair.ours.state["model"]
    ours, theirs = model_tensors(pair.ours.model), model_tensors(again.model)
    assert list(ours) == list(theirs)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    twice = export_huggingface(again, tmp_path / "twice")
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        assert (twice / name).read_bytes() == (out / name).read_bytes(), name


def test_texts_have_the_ids_of_the_published_tokenizer(pair: Pair) -> None:
    published = transformers.PreTrainedTokenizerFast(tokenizer_file=str(pair.directory / "tokenizer.json"))
    ours = pair.ours.src_tokenizer
    opening = [pair.theirs.config.bos_token_id] if pair.name == "bart" else []
    for text in ("abc", "  abc d  bcd ", "the hell Ünï €", "", "zzz abc"):
        ids = ours.encode(text)
        expected = opening + published(text, add_special_tokens=False).input_ids
        assert pair.order[torch.tensor(ids, dtype=torch.long)].tolist() == expected, text
        assert not {PAD, BOS, EOS} & set(ids)
    assert ours.decode([*ours.encode("abc d"), EOS]) == "abc d"
    assert not {PAD, BOS, EOS} & set(ours.encode("a</s>b <pad> <s>"))


def test_a_given_beginning_comes_after_the_opening(pair: Pair) -> None:
    tokenizer = pair.ours.tgt_tokenizer
    assert constraints_for(tokenizer, prefix="abc d").head == tuple(tokenizer.encode("abc d"))
    translator = Translator([pair.ours.model], pair.ours.src_tokenizer, tokenizer, SearchConfig(beam=2))
    (found,) = translator.hypotheses(["abc"], prefixes=["abc d"])
    assert found[0].text.startswith("abc d")


def test_weights_in_several_files(pair: Pair, tmp_path) -> None:
    save(pair.name, tmp_path / "in", shard_size="3KB")
    assert not (tmp_path / "in" / "model.safetensors").exists()
    again = load_model(import_run(tmp_path / "in", tmp_path / "run").directory)
    ours, theirs = model_tensors(pair.ours.model), model_tensors(again.model)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_the_preset_has_the_parameters_of_bart_base() -> None:
    sizes = {"d_model": 768, "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072}
    sizes |= dict.fromkeys(("encoder_layers", "decoder_layers"), 6)
    sizes |= dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 12)
    with torch.device("meta"):  # sizes without numbers
        theirs = transformers.BartModel(transformers.BartConfig(**sizes))
        ours = build_model(*preset("bart-base"), Vocab(50265, 50265, shared=True))
    two_rows = 2 * 2 * 768  # of positions, which fairseq counts from 2 on, in encoder and decoder
    assert sum(p.numel() for p in theirs.parameters()) == sum(p.numel() for p in ours.parameters()) + two_rows
