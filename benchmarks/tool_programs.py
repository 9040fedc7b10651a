"""Small programs that translate lines with an outside tool, as its own documentation does it.

Each runs in an environment of its own. It is given a model and a beam as arguments and lines as JSON on
standard input, and prints a JSON object on its last line: the version of the tool and the translations.
"""

_START = """
import json, sys
from importlib.metadata import version
model, beam, lines = sys.argv[1], int(sys.argv[2]), json.load(sys.stdin)
def done(tool, out):
    print("\\n" + json.dumps({"version": version(tool), "lines": out}))
"""

TRANSFORMERS = (
    _START
    + """
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
tokenizer, network = AutoTokenizer.from_pretrained(model), AutoModelForSeq2SeqLM.from_pretrained(model)
def translate(line):
    ids = tokenizer(line, return_tensors="pt", return_token_type_ids=False)
    found = network.generate(**ids, num_beams=beam, max_new_tokens=100)[0]
    return tokenizer.decode(found, skip_special_tokens=True)
done("transformers", [translate(line) for line in lines])
"""
)

PIPELINE = (
    _START
    + """
from transformers import pipeline
translate = pipeline("translation", model=model)
found = [translate(line, num_beams=beam, max_length=100)[0] for line in lines]
done("transformers", [one["translation_text"] for one in found])
"""
)

CONVERTER = (
    _START
    + """
import subprocess, tempfile
import ctranslate2, transformers
out = tempfile.mkdtemp() + "/converted"
program = sys.executable.rpartition("/")[0] + "/ct2-transformers-converter"
subprocess.run([program, "--model", model, "--output_dir", out], check=True)
tokenizer, fast = transformers.AutoTokenizer.from_pretrained(model), ctranslate2.Translator(out, device="cpu")
def translate(line):
    pieces = tokenizer.convert_ids_to_tokens(tokenizer(line).input_ids)
    found = fast.translate_batch([pieces], beam_size=beam, disable_unk=True, max_decoding_length=100)
    ids = tokenizer.convert_tokens_to_ids(found[0].hypotheses[0])
    return tokenizer.decode(ids, skip_special_tokens=True)
done("ctranslate2", [translate(line) for line in lines])
"""
)

CTRANSLATE2 = (
    _START
    + """
import ctranslate2, tokenizers
tokenizer = tokenizers.Tokenizer.from_file(model + "/tokenizer.json")
vocabulary = json.load(open(model + "/shared_vocabulary.json"))
numbers = {name: number for number, name in enumerate(vocabulary)}
fast = ctranslate2.Translator(model, device="cpu")
def translate(line):
    pieces = [vocabulary[number] for number in tokenizer.encode(line).ids]
    found = fast.translate_batch([pieces], beam_size=beam, max_decoding_length=100)
    return tokenizer.decode([numbers[name] for name in found[0].hypotheses[0]])
done("ctranslate2", [translate(line) for line in lines])
"""
)

OPTIMUM = (
    _START
    + """
from optimum.onnxruntime import ORTModelForSeq2SeqLM
from transformers import AutoTokenizer
tokenizer, network = AutoTokenizer.from_pretrained(model), ORTModelForSeq2SeqLM.from_pretrained(model)
def translate(line):
    ids = tokenizer(line, return_tensors="pt", return_token_type_ids=False)
    found = network.generate(**ids, num_beams=beam, max_new_tokens=100)[0]
    return tokenizer.decode(found, skip_special_tokens=True)
done("optimum", [translate(line) for line in lines])
"""
)

ARGOS = (
    _START
    + """
import os, tempfile
os.environ |= {"XDG_DATA_HOME": tempfile.mkdtemp(), "ARGOS_DEVICE_TYPE": "cpu"}
import argostranslate.package, argostranslate.translate
argostranslate.package.install_from_path(model)
class Whole:
    # In place of a model for sentences that would be downloaded: every line is one sentence.
    def split_sentences(self, text):
        return [text]
source, target = (argostranslate.translate.get_language_from_code(code) for code in ("en", "de"))
translation = source.get_translation(target)
while not hasattr(translation, "sentencizer"):
    translation = translation.underlying
translation.sentencizer = Whole()
done("argostranslate", [translation.translate(line) for line in lines])
"""
)

LIBRETRANSLATE = (
    _START
    + """
from libretranslatepy import LibreTranslateAPI
client = LibreTranslateAPI(model)
done("libretranslatepy", [client.translate(line, "en", "de") for line in lines])
"""
)

DEEPL = (
    _START
    + """
import deepl
client = deepl.Translator("key", server_url=model)
options = {"source_lang": "EN", "target_lang": "DE", "split_sentences": "0"}
found = [client.translate_text(line, **options) for line in lines]
done("deepl", [one.text for one in found])
"""
)

TRANSFORMERS_JS = """
import { pipeline, env } from '@huggingface/transformers';
import fs from 'fs';
const [model, beam] = process.argv.slice(2);
env.allowRemoteModels = false;
env.localModelPath = model.slice(0, model.lastIndexOf('/') + 1);
const dtype = fs.readdirSync(model + '/onnx')[0].includes('quantized') ? 'q8' : 'fp32';
const translate = await pipeline('translation', model.slice(model.lastIndexOf('/') + 1), { dtype });
const lines = [];
for (const line of JSON.parse(fs.readFileSync(0, 'utf8'))) {
  lines.push((await translate(line, { num_beams: Number(beam), max_new_tokens: 100 }))[0].translation_text);
}
console.log('\\n' + JSON.stringify({ version: env.version, lines }));
"""
