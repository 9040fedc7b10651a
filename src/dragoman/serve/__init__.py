"""A translation service over HTTP, in the dialects that existing clients speak. It imports without torch.

request ─ gate ─▶ dialect ─▶ service ─▶ sentences ─▶ batcher ─▶ translator
          size,    own, LibreTranslate,   split, pivot,    one for each
          key,     DeepL, Apertium,       markup, terms    language pair
          time     tmserver
                 ▶ models ─▶ batches ─▶ a function that predicts, writes, fills gaps or embeds
                   own, OpenAI
"""
