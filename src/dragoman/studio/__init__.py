"""A page to look into runs: translations, attention, beams, single heads, two runs, training over time.

browser ─ gate ─▶ api ─▶ one worker ─▶ subject ─▶ probe, decode
          host,   checked   in turn      a run at a
          size    requests               checkpoint

It listens on loopback alone. The page is made of static files that ask nobody but this server.
"""
