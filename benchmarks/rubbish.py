"""Requests that nobody means: every route of every dialect, with bodies, headers and bytes that are
wrong."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

from rubbish_words import EXPLAIN, FILES, KINDS, METHODS, NAMES, OWN, RIGHT, ROUTES, TEXTS, WORDS


@dataclass(frozen=True)
class Sent:
    """A request. Where `raw` is there, these bytes are what goes over the wire."""

    kind: str
    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    raw: bytes | None = None

    @property
    def wire(self) -> bytes:
        if self.raw is not None:
            return self.raw
        lines = [f"{self.method} {self.path} HTTP/1.1", "Host: localhost"]
        lines += [f"{name}: {value}" for name, value in self.headers if name.lower() != "host"]
        lines += [f"Content-Length: {len(self.body)}", "Connection: close", "", ""]
        return "\r\n".join(lines).encode("latin-1", "replace") + self.body


class Rubbish:
    """The same seed sends the same requests."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.kinds: list[Callable[[], Sent]] = [self._fields] * 4 + [self._form] * 2 + [self._query] * 2
        self.kinds += [self._multipart] * 2 + [
            self._json,
            self._bytes,
            self._method,
            self._path,
            self._headers,
        ]

    def request(self) -> Sent:
        return self.chance.choice(self.kinds)()

    def on_the_wire(self) -> Sent:
        """What only a socket can send, or any other."""
        return self._broken() if self.chance.random() < 0.5 else self.request()

    def value(self, depth: int = 0) -> Any:
        """Of any JSON type."""
        chance = self.chance
        makers: list[Callable[[], Any]] = [
            lambda: chance.choice(WORDS),
            lambda: chance.choice(TEXTS),
            lambda: chance.choice((None, True, False, 0, -1, 1.5, 1e308, 10**40, 2**63, "", [], {})),
            lambda: "".join(
                chr(chance.choice((chance.randrange(32, 127), chance.randrange(0xD7FF)))) for _ in range(9)
            ),
        ]
        if depth < 4:
            makers.append(lambda: [self.value(depth + 1) for _ in range(chance.randrange(4))])
            makers.append(
                lambda: {chance.choice(NAMES): self.value(depth + 1) for _ in range(chance.randrange(4))}
            )
            makers.append(lambda: [chance.choice(WORDS)] * chance.choice((1, 64, 65, 300)))
        return chance.choice(makers)()

    def _right(self, path: str) -> dict[str, Any]:
        return OWN if path == "/api/v1/translate" else EXPLAIN if path == "/api/v1/explain" else RIGHT

    def _asked(self, path: str) -> dict[str, Any]:
        """What is right, with up to three fields that may not be."""
        right = dict(self._right(path))
        for _ in range(self.chance.randrange(4)):
            name = self.chance.choice([*right, *NAMES])
            if self.chance.random() < 0.2:
                right.pop(name, None)
            else:
                right[name] = self.value()
        return right

    def _route(self) -> tuple[str, str]:
        return self.chance.choice(ROUTES)

    def _fields(self) -> Sent:
        method, path = self._route()
        body = json.dumps(self._asked(path), ensure_ascii=self.chance.random() < 0.5).encode(
            "utf-8", "surrogatepass"
        )
        return Sent("JSON fields", method, path, (("Content-Type", "application/json"),), body)

    def _json(self) -> Sent:
        """No object, no JSON, or too much of it."""
        method, path = self._route()
        chance = self.chance
        whole = json.dumps(self._asked(path)).encode()
        body = chance.choice(
            (
                whole[: chance.randrange(len(whole))],
                json.dumps(self.value()).encode(),
                b"[" * chance.choice((10, 5000, 200_000)),
                b'{"q":' * 3000 + b"1" + b"}" * 3000,
                b'{"q": "\\ud800", "source": "en", "target": "de"}',
                b'{"q": NaN, "source": Infinity}',
                b"\xef\xbb\xbf" + whole,
                whole.decode().encode("utf-16"),
                b'{"q": "'
                + b"a" * chance.choice((6000, 900_000, 1_100_000))
                + b'", "source": "en", "target": "de"}',
                b'{"q": 1' + b"0" * 5000 + b"}",
                b'{"q": "a", "q": ["b"], "source": "en", "target": "de"}',
                b"\xff\xfe\x00",
                b"\0",
            )
        )
        return Sent("JSON that is none", method, path, (("Content-Type", "application/json"),), body)

    def _texts(self, fields: dict[str, Any]) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for name, value in fields.items():
            for one in value if isinstance(value, list) else [value]:
                found.append((name, one if isinstance(one, str) else json.dumps(one)))
        return found

    def _form(self) -> Sent:
        method, path = self._route()
        body = urlencode(self._texts(self._asked(path)), errors="replace").encode()
        if self.chance.random() < 0.3:
            body = self._spoilt(body)
        return Sent("forms", method, path, (("Content-Type", "application/x-www-form-urlencoded"),), body)

    def _query(self) -> Sent:
        method, path = self._route()
        query = urlencode(self._texts(self._asked(path)), errors="replace")
        if self.chance.random() < 0.3:
            query += self.chance.choice(
                ("&%", "&%zz", "&=&==", "&q=%ff%fe", "&q=%00", "&a[]=1", "?x=1", "#y", "&q")
            )
        return Sent("addresses with fields", method, f"{path}?{query}")

    def _multipart(self) -> Sent:
        chance = self.chance
        method, path = chance.choice(
            (*(("POST", p) for p in ("/translate_file", "/api/v1/documents", "/v2/document")), self._route())
        )
        mark = chance.choice(("x", "----b", "a" * 70))
        parts: list[bytes] = []
        for name, text in self._texts(self._asked(path)):
            parts.append(
                f'Content-Disposition: form-data; name="{name}"\r\n\r\n{text}'.encode("utf-8", "replace")
            )
        name, data = chance.choice([*FILES.items()])
        if chance.random() < 0.3:
            data = self._spoilt(data)
        head = f'Content-Disposition: form-data; name="file"; filename="{name}"\r\n'
        head += f"Content-Type: {chance.choice(KINDS)}\r\n\r\n"
        parts.append(head.encode() + data)
        body = b"".join(b"--" + mark.encode() + b"\r\n" + part + b"\r\n" for part in parts)
        body += b"--" + mark.encode() + b"--\r\n"
        if chance.random() < 0.3:
            body = self._spoilt(body)
        told = chance.choice(
            (f"; boundary={mark}",) * 6 + ("", "; boundary=", "; boundary=\u00e9", '; boundary="')
        )
        return Sent("multipart", method, path, (("Content-Type", f"multipart/form-data{told}"),), body)

    def _spoilt(self, data: bytes) -> bytes:
        """Cut off, doubled, or with bytes that are others."""
        chance, changed = self.chance, bytearray(data)
        if chance.random() < 0.4:
            return data[: chance.randrange(len(data) + 1)]
        for _ in range(chance.randrange(1, 9)):
            if changed:
                changed[chance.randrange(len(changed))] = chance.randrange(256)
        return bytes(changed) * chance.choice((1, 1, 2))

    def _bytes(self) -> Sent:
        method, path = self._route()
        body = self.chance.randbytes(self.chance.choice((0, 1, 7, 300, 5000)))
        return Sent("random bytes", method, path, (("Content-Type", self.chance.choice(KINDS)),), body)

    def _method(self) -> Sent:
        sent = self.chance.choice((self._fields, self._form))()
        return replace(sent, kind="other methods", method=self.chance.choice(METHODS))

    def _path(self) -> Sent:
        chance = self.chance
        parts = [
            chance.choice(
                (
                    *WORDS,
                    "v2",
                    "v3",
                    "api",
                    "v1",
                    "tm",
                    "unit",
                    "translate",
                    "glossaries",
                    "..",
                    "",
                    "a" * 2000,
                )
            )
            for _ in range(5)
        ]
        path = "/" + "/".join(
            quote(part, safe=chance.choice(("", "/%"))) for part in parts[: chance.randrange(1, 6)]
        )
        path = path.encode("ascii", "replace").decode().translate({10: "_", 13: "_", 32: "_", 0: "_"})
        return replace(self._fields(), kind="other paths", method=chance.choice(METHODS[:7]), path=path)

    def _headers(self) -> Sent:
        chance = self.chance
        values = (
            *KINDS,
            "",
            "a" * 9000,
            "\x80\xff",
            "Bearer",
            "Bearer x",
            "DeepL-Auth-Key ",
            "gzip",
            "bytes=0-",
            "évil",
            "-1",
            "é" * 40,
        )
        names = (
            "Content-Type",
            "Accept",
            "Authorization",
            "X-API-Key",
            "Origin",
            "Host",
            "Content-Encoding",
            "Range",
            "Cookie",
            "Accept-Language",
            "X-Forwarded-For",
            "Content-Language",
            "If-None-Match",
            "Accept-Encoding",
        )
        own = tuple((chance.choice(names), chance.choice(values)) for _ in range(chance.randrange(1, 6)))
        sent = chance.choice((self._fields, self._form, self._query))()
        return replace(sent, kind="other headers", headers=(*sent.headers, *own))

    def _broken(self) -> Sent:
        chance, sent = self.chance, self.request()
        head, _, body = sent.wire.partition(b"\r\n\r\n")
        chunked = head.replace(b"Content-Length: %d" % len(sent.body), b"Transfer-Encoding: chunked")
        raw = chance.choice(
            (
                chunked + b"\r\n\r\n5\r\nhello\r\n",
                chunked + b"\r\n\r\nzz\r\n",
                chunked + b"\r\n\r\n-1\r\n\r\n0\r\n\r\n",
                chunked + b"\r\n\r\n%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n",
                chunked + b"\r\n\r\nffffffffffffffffff\r\nx",
                head + b"\r\nContent-Length: 3\r\n\r\nabcdef",
                head + b"\r\nContent-Length: -5\r\n\r\n",
                head + b"\r\nContent-Length: x\r\n\r\n",
                head + b"\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
                head + b"\r\nExpect: 100-continue\r\n\r\n" + body,
                head + b"\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
                head + b"\r\nX-Long: " + b"a" * 20_000 + b"\r\n\r\n",
                head + b"\r\n: nameless\r\n\r\n",
                head + b"\r\nBad Name: x\r\n\r\n",
                head + b"\r\nX: a\0b\r\n\r\n",
                head.replace(b"\r\n", b"\n") + b"\n\n",
                sent.wire + sent.wire,
                sent.wire[: chance.randrange(len(sent.wire))],
                head.replace(b"HTTP/1.1", b"HTTP/0.9") + b"\r\n\r\n",
                head.replace(b"HTTP/1.1", b"HTTP/9.9") + b"\r\n\r\n",
                head.replace(b"Host: localhost\r\n", b"") + b"\r\n\r\n" + body,
                b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + chance.randbytes(40),
                chance.randbytes(chance.randrange(1, 600)),
                b"\r\n" * 50,
                b"GET " + b"/" * 30_000 + b" HTTP/1.1\r\n\r\n",
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                b"GET http://other.example/ HTTP/1.1\r\nHost: a\r\n\r\n",
            )
        )
        return replace(sent, kind="broken HTTP", raw=raw)
