"""JoeyNMT's and OpenNMT-py's recurrent models through their own classes, beside ours with the same wiring.

Neither declares torch 2.13, so pip installs them without their pins, into an environment of their own:

    pip install torch==2.13.0 numpy pyyaml sacrebleu
    pip install jaxtyping tokenizers safetensors typer rich                                    # for dragoman
    pip install --no-deps joeynmt OpenNMT-py
    pip install importlib_metadata tensorboard sentencepiece subword-nmt sacremoses datasets pandas \\
        matplotlib seaborn packaging                                                           # for JoeyNMT
    pip install configargparse pyonmttok 'ctranslate2<5' rapidfuzz pyahocorasick fasttext-wheel spacy six

All are one bidirectional LSTM layer (128 a direction) and one LSTM decoder layer of 256 with input feeding:
the state is moved first, then asks (Luong's wiring), and the attentional output goes into the next step.
"""

from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import torch
from joeynmt.model import build_model
from joeynmt.search import search as joey_search
from onmt.decoders.decoder import InputFeedRNNDecoder
from onmt.encoders.rnn_encoder import RNNEncoder
from onmt.models.model import NMTModel
from onmt.modules import Embeddings
from onmt.translate import GNMTGlobalScorer, Translator
from torch import Tensor, nn

from common import SMOOTHING, plain_loss, stepper
from contender import BEAMS, DROPOUT, FORCED, Contender, ours
from dragoman.data.batch import PairBatch
from dragoman.models.base import Vocab
from dragoman.models.rnn import RnnConfig

WIDTH = 256
NOTES = (
    "The peers run through their own models and searches, JoeyNMT with its own loss, OpenNMT-py with torch's "
    "cross entropy, as in its trainer; their data loading is left out. "
    f"JoeyNMT {version('joeynmt')} has the additive score, and begins with the encoder's last state through "
    f"one linear map. OpenNMT-py {version('OpenNMT-py')} has the general score, its default, begins with the "
    "states as they are, and has a bias on the output. Ours maps both states of the LSTM."
)


class JoeyVocabulary:
    """What JoeyNMT's models ask of a vocabulary. Its own class fixes other ids for the control pieces."""

    def __init__(self, vocab: Vocab) -> None:
        self.size = vocab.tgt_size
        self.pad_index, self.bos_index, self.eos_index = vocab.pad_id, vocab.bos_id, vocab.eos_id
        self.unk_index, self.sep_index = 3, None
        self.specials, self.lang_tags = [], []

    def __len__(self) -> int:
        return self.size


class OnmtVocabulary:
    """The same for OpenNMT-py."""

    def __init__(self, vocab: Vocab) -> None:
        self.size = vocab.tgt_size
        self.ids = {"<blank>": vocab.pad_id, "<s>": vocab.bos_id, "</s>": vocab.eos_id}

    def __len__(self) -> int:
        return self.size

    def lookup_token(self, token: str) -> int:
        return self.ids.get(token, 3)


def lstms_and_peers(vocab: Vocab) -> dict[str, Contender]:
    torch.manual_seed(0)
    settings: dict[str, Any] = {"dropout": DROPOUT, "wiring": "luong", "input_feeding": True}
    return {
        "dragoman, additive": ours(
            "rnn", RnnConfig(model_dim=WIDTH, attention="additive", **settings), vocab
        ),
        "JoeyNMT, additive": joeynmt(vocab),
        "dragoman, general": ours("rnn", RnnConfig(model_dim=WIDTH, attention="general", **settings), vocab),
        "OpenNMT-py, general": opennmt(vocab),
    }


def joeynmt(vocab: Vocab) -> Contender:
    shared: dict[str, Any] = {
        "type": "recurrent",
        "rnn_type": "lstm",
        "num_layers": 1,
        "dropout": DROPOUT,
        "embeddings": {"embedding_dim": WIDTH, "scale": True, "dropout": DROPOUT},
    }
    encoder = shared | {"hidden_size": WIDTH // 2, "bidirectional": True}
    decoder = shared | {
        "hidden_size": WIDTH,
        "hidden_dropout": DROPOUT,
        "attention": "bahdanau",
        "input_feeding": True,
        "init_hidden": "bridge",
    }
    config = {"encoder": encoder, "decoder": decoder, "tied_embeddings": True, "tied_softmax": True}
    words = JoeyVocabulary(vocab)
    model = build_model(config, words, words)
    model.loss_function = ("crossentropy", SMOOTHING)

    def loss(batch: PairBatch) -> Tensor:
        order = batch.src_mask.sum(dim=1).argsort(descending=True)  # its encoder wants the longest first
        found, *_ = model(
            return_type="loss",
            src=batch.src_ids[order],
            src_length=batch.src_mask.sum(dim=1)[order],
            src_mask=batch.src_mask[order][:, None],
            trg_input=batch.tgt_in[order],
            trg=batch.tgt_out[order],
            trg_mask=batch.tgt_mask[order][:, None],
        )
        return found

    def decode(batch: PairBatch, beam: int) -> object:
        source = SimpleNamespace(
            src=batch.src_ids,
            src_length=batch.src_mask.sum(dim=1),
            src_mask=batch.src_mask[:, None],
            has_trg=False,
        )
        return joey_search(
            model, source, FORCED + 1, beam_size=beam, beam_alpha=1.0, min_output_length=FORCED
        )

    return Contender(model, stepper(model, loss), decode)


def opennmt(vocab: Vocab) -> Contender:
    embeddings = Embeddings(WIDTH, vocab.tgt_size, vocab.pad_id, dropout=DROPOUT)
    encoder = RNNEncoder("LSTM", True, 1, WIDTH, DROPOUT, embeddings)
    decoder = InputFeedRNNDecoder(
        "LSTM", True, 1, WIDTH, attn_type="general", dropout=DROPOUT, embeddings=embeddings
    )
    model = NMTModel(encoder, decoder)
    model.generator = nn.Linear(WIDTH, vocab.tgt_size)
    model.generator.weight = embeddings.word_lut.weight
    words = {"tgt": OnmtVocabulary(vocab), "decoder_start_token": "<s>"}
    translators = {
        beam: Translator(
            model,
            words,
            beam_size=beam,
            random_sampling_topk=int(beam == 1),  # the best piece each time: greedy
            min_length=FORCED,
            max_length=FORCED + 1,
            max_length_ratio=0,
            dump_beam="",
            global_scorer=GNMTGlobalScorer(1.0, 0.0, "avg", "none"),
        )
        for beam in BEAMS
    }

    def loss(batch: PairBatch) -> Tensor:
        tgt = torch.cat([batch.tgt_in, batch.tgt_out[:, -1:]], dim=1)  # it takes the last column off
        hidden, _ = model(batch.src_ids[:, :, None], tgt[:, :, None], batch.src_mask.sum(dim=1))
        return plain_loss(model.generator(hidden), batch)

    def decode(batch: PairBatch, beam: int) -> object:
        source = {"src": batch.src_ids[:, :, None], "srclen": batch.src_mask.sum(dim=1)}
        return translators[beam].translate_batch(source, attn_debug=False)

    return Contender(model, stepper(model, loss), decode)
