"""TMX: a unit that lacks the target language gets a variant in it, marked by a property."""

from collections.abc import Iterator, Mapping

from dragoman.data.documents.inline import Inline, written_unit
from dragoman.data.documents.tree import Node, collect, escape_xml, indentation, parse_tree
from dragoman.data.documents.unit import Check, Edit, Unit, UnitState, unchecked
from dragoman.data.formats.bitext import UNKNOWN, best_match, normal
from dragoman.data.formats.xml import check_root
from dragoman.errors import UserError

_AROUND = {"hi": None, "bpt": "i", "ept": "i"}
_REVIEW = '<prop type="x-state">needs-review</prop>'


class TmxDocument:
    def __init__(self, text: str, where: str, languages: tuple[str, str], check: Check = unchecked) -> None:
        self._text, self._check = text, check
        root = parse_tree(text, where, check)
        check_root(root.name, "tmx", where, root.line)
        units = list(root.below("tu"))
        self._languages = _languages(units, root, languages, where)
        self.units: list[Unit] = []
        self._places: list[tuple[Node, Node, Node | None]] = []
        for node in units:
            self._add(node)

    def _add(self, node: Node) -> None:
        variants = {_language(variant): variant for variant in node.elements("tuv")}
        src = best_match(self._languages[0], variants)
        tgt = best_match(self._languages[1], [language for language in variants if language != src])
        segment = variants[src].first("seg") if src is not None else None
        if segment is None or src is None:
            return
        target = variants[tgt].first("seg") if tgt is not None else None
        if tgt is not None and target is None:
            return
        inline = Inline(self._check)
        collect(self._text, segment, inline, _AROUND)
        state: UnitState = "done" if target is not None and target.children else "new"
        name = node.attributes.get("tuid", "")
        self.units.append(inline.unit(name, node.line, escape_xml, state))
        self._places.append((node, variants[src], target))

    def edits(self, texts: Mapping[int, str]) -> Iterator[Edit]:
        for number, text in texts.items():
            node, source, target = self._places[number]
            content = written_unit(self.units[number], text, escape_xml)
            if target is not None:
                tag = self._text[target.start : target.open_end].removesuffix("/>").removesuffix(">").rstrip()
                yield Edit(target.start, target.end, f"{tag}>{content}</seg>")
                continue
            attribute = "xml:lang" if "xml:lang" in source.attributes else "lang"
            *_, last = node.elements("tuv")
            opened = f'<tuv {attribute}="{self._languages[1]}">'
            new = f"{indentation(self._text, last)}{opened}{_REVIEW}<seg>{content}</seg></tuv>"
            yield Edit(last.end, last.end, new)


def _language(variant: Node) -> str:
    return variant.attributes.get("xml:lang") or variant.attributes.get("lang") or ""


def _languages(units: list[Node], root: Node, wanted: tuple[str, str], where: str) -> tuple[str, str]:
    """The languages of the run; if unknown, those of the memory."""
    found = dict.fromkeys(_language(variant) for unit in units for variant in unit.elements("tuv"))
    header = root.first("header")
    named = "" if header is None else header.attributes.get("srclang", "")
    src = wanted[0] if wanted[0] != UNKNOWN[0] else best_match(named, found) or next(iter(found), "")
    others = [language for language in found if normal(language) != normal(src)]
    tgt = wanted[1] if wanted[1] != UNKNOWN[1] else next(iter(others), "")
    if not tgt:
        raise UserError(
            f"{where}: neither the run nor the memory names the language to translate into; train with"
            " data.src_lang and data.tgt_lang"
        )
    # A memory with regions goes on with its own names for them.
    return src, best_match(tgt, others) or tgt
