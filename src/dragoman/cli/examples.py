"""An example or two for the help of every command."""

EXAMPLES: dict[str, tuple[str, ...]] = {
    "demo": ("dragoman demo --quick",),
    "train": (
        "dragoman train pairs.tsv",
        "dragoman train train.en train.de --valid dev.en dev.de -o runs/en-de",
        "dragoman train memory.tmx model.preset=transformer-base --dry-run",
    ),
    "resume": ("dragoman resume runs/en-de", "dragoman resume runs/en-de train.max_updates=20000"),
    "pretrain": ("dragoman pretrain text.txt --model bert-tiny -o runs/bert",),
    "finetune": (
        "dragoman finetune runs/bert reviews.tsv --task classify",
        "dragoman finetune runs/bert train.tsv --task pair --valid dev.tsv",
    ),
    "distill": ("dragoman distill runs/teacher -o runs/student",),
    "back-translate": ("dragoman back-translate runs/de-en news.de -o news.en --sample",),
    "adapt": (
        "dragoman adapt runs/en-de corrections.tmx",
        "dragoman adapt runs/en-de memory.tsv --share 0.3",
    ),
    "average": ("dragoman average runs/en-de --last 5",),
    "tune": ("dragoman tune runs/en-de", "dragoman tune runs/en-de --beams 1,4,8 --write"),
    "translate": (
        "dragoman translate runs/en-de                     # type sentences",
        'dragoman translate runs/en-de "Good morning."',
        "dragoman translate runs/en-de -i news.en -o news.de",
        "dragoman translate runs/en-de guide.po -o guide.de.po",
    ),
    "generate": (
        'dragoman generate runs/gpt "Once upon a time"',
        'dragoman generate runs/gpt "The" --n-best 5 --temperature 0.8',
    ),
    "fill": ('dragoman fill runs/bert "The <mask> sat on the mat."',),
    "predict": (
        "dragoman predict runs/classify                    # type texts",
        "dragoman predict runs/classify new.tsv -o labels.tsv",
        "dragoman predict runs/classify test.tsv --metrics",
    ),
    "embed": ("dragoman embed runs/bert text.txt -o vectors.npy",),
    "score": ("dragoman score runs/en-de test.en test.de -o scores.tsv",),
    "align": ("dragoman align runs/en-de test.en test.de -o links.txt",),
    "evaluate": ("dragoman evaluate runs/en-de test.en test.de",),
    "compare": ("dragoman compare runs/small runs/large --test test.en test.de -o lengths",),
    "search-report": ("dragoman search-report runs/en-de test.en test.de -o search",),
    "explain": (
        'dragoman explain runs/en-de "A man sleeps."',
        'dragoman explain runs/en-de "A man sleeps." --figure heads -o heads.svg',
        'dragoman explain runs/bert "A man sleeps." --html look.html',
    ),
    "studio": ("dragoman studio runs/en-de runs/bert",),
    "lab": ("dragoman lab", "dragoman lab bottleneck --quick", "dragoman lab all -o lab"),
    "tokenize": ('dragoman tokenize runs/en-de "unbelievable" --steps',),
    "serve": (
        "dragoman serve runs/en-de",
        "dragoman serve exports/en-de --host 0.0.0.0 --key-file keys.txt",
    ),
    "export": (
        "dragoman export runs/en-de -o exports/en-de --quantize int8",
        "dragoman export runs/en-de --to huggingface",
    ),
    "import": ("dragoman import opus-mt-en-de -o runs/en-de --src-lang en --tgt-lang de",),
    "verify": ("dragoman verify runs/en-de",),
    "corpus": ("dragoman corpus train.en train.de --test test.en test.de",),
    "align-corpus": ("dragoman align-corpus train.en train.de -o links.txt",),
    "doctor": ("dragoman doctor",),
}
