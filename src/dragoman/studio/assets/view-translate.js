/* Translate: the best translations, the probability of each piece, and what else could have stood in its place. */

import { ask } from "./api.js";
import { card, fixed, h, percent, slider } from "./dom.js";
import { heatmap, ramp } from "./heatmap.js";
import { chips } from "./pieces.js";
import { about, attention, translation, withWeights } from "./questions.js";
import { surprise } from "./scale.js";
import { list, set, state, told } from "./state.js";
import { all, matrixOf } from "./weights.js";

export function create(root, _runs, wrote) {
  const pieces = h("div", { class: "pieces", role: "group", "aria-label": "Pieces" });
  const others = h("div", {});
  const forced = h("p", {});
  const rows = h("tbody", {});
  const map = h("div", { class: "drawing" });
  const readout = h("p", { class: "readout" });
  const mapCard = card("Alignment", readout, map, h("p", { class: "soft" }, "0 ", ramp(), " 1"));
  let shown = null;

  root.append(
    h("div", { class: "columns wide-left" },
      h("div", {},
        card("Piece by piece", h("p", { class: "soft" }, "The less a model expected a piece, the stronger its colour. Click one for its alternatives."), forced, pieces, others),
        card("Best translations", h("div", { class: "bar" },
          slider("Beam", 1, 16, 1, state.beam, String, (beam) => set({ beam, target: "" })),
          slider("Length normalisation α", 0, 2, 0.1, state.alpha, (value) => value.toFixed(1), (alpha) => set({ alpha, target: "" }))), h("div", { class: "table" }, h("table", {},
          h("thead", {}, h("tr", {}, h("th", { class: "words" }, "translation"), h("th", {}, "score"), h("th", {}, "log p"), h("th", {}, "pieces"))), rows)))),
      mapCard));

  function drawPieces(found) {
    const least = found.reduce((worst, piece, at) => ((piece.score ?? -99) < (found[worst].score ?? -99) ? at : worst), 0);
    const at = Math.min(state.at === undefined ? least : Number(state.at), found.length - 1);
    pieces.replaceChildren(...found.map((piece, number) => {
      const button = h("button", {
        class: `piece${number < list(state.forced).length ? " forced" : ""}`, type: "button", "aria-pressed": String(number === at),
        "data-at": number, title: `log p ${fixed(piece.score, 3)}`, onclick: () => set({ at: number }),
      }, piece.piece, h("small", {}, percent(piece.score)));
      button.style.background = surprise(piece.score);
      return button;
    }));
    drawOthers(found, at);
  }

  function drawOthers(found, at) {
    const chosen = found[at];
    const options = chosen.others.some((other) => other.id === chosen.id) ? chosen.others : [...chosen.others, chosen];
    others.replaceChildren(h("h3", {}, `Instead of `, h("b", {}, chosen.piece)), h("ol", { class: "others" }, options.map((other) => {
      const share = h("i", {});
      share.style.width = `${100 * Math.exp(other.score ?? -99)}%`;
      const own = other.id === chosen.id;
      return h("li", { class: own ? "own" : null },
        h("b", { title: other.piece }, other.piece), h("span", { class: "share" }, share), h("span", { class: "number soft" }, percent(other.score)),
        h("button", {
          type: "button", disabled: own || other.piece === "</s>", "data-force": other.id,
          title: other.piece === "</s>" ? "The sentence would end here" : "Translate anew from here, with this piece",
          onclick: () => set({ forced: told([...found.slice(0, at).map((piece) => piece.id), other.id]), target: "", at: undefined }),
        }, "force"));
    })));
  }

  function drawForced(answer) {
    const count = list(state.forced).length;
    forced.replaceChildren(...(count ? [
      h("span", { class: "soft" }, `The first ${count === 1 ? "piece is" : `${count} pieces are`} forced. `),
      h("button", { type: "button", id: "free", onclick: () => set({ forced: "", target: "" }) }, "Let the model choose"),
    ] : []));
    rows.replaceChildren(...answer.hypotheses.map((each, number) => h("tr", {
      class: "choice", tabindex: 0, "aria-selected": String(state.target ? told(each.ids) === state.target : number === 0),
      onclick: () => set({ target: number ? told(each.ids) : "", at: undefined }),
      onkeydown: (event) => { if (event.key === "Enter") event.currentTarget.click(); },
    }, h("td", { class: "words" }, each.text || "(empty)"), h("td", {}, fixed(each.score, 3)), h("td", {}, fixed(each.log_prob, 3)), h("td", {}, String(each.length)))));
  }

  async function drawMap() {
    const data = await attention({ masked: {} });
    if (!data.start) {
      mapCard.hidden = true;
      return;
    }
    mapCard.hidden = false;
    const whole = await withWeights(data, data.start.module, (kind) => attention({ kind, masked: {} }));
    const own = whole.attentions.find((entry) => entry.module === data.start.module);
    const heads = data.start.head === null ? all(own.heads) : [data.start.head];
    const matrix = matrixOf(whole, own, heads, { words: true, rows: data.start.when_read ? "read" : "written" });
    const tell = (r, c) => readout.replaceChildren(...(r === null
      ? [own.kind === "cross" ? "What each word looked at in the source." : `${own.kind} attention, layer ${own.layer}.`]
      : [h("b", {}, matrix.rows[r]), " looked at ", h("b", {}, matrix.columns[c]), ` ${matrix.values[r * matrix.columns.length + c].toFixed(2)}`]));
    tell(null, null);
    map.replaceChildren(heatmap(matrix, { room: map.clientWidth || 360, label: "alignment", hover: tell }));
  }

  async function update() {
    const answer = await translation();
    let found = answer.pieces;
    if (state.target) found = (await ask("positions", { ...about(), target: list(state.target) })).pieces;
    shown = { found, text: state.target ? answer.hypotheses.find((each) => told(each.ids) === state.target)?.text ?? "" : answer.hypotheses[0].text };
    wrote(shown.text);
    drawForced(answer);
    drawPieces(found);
    await drawMap();
    return shown.text;
  }

  return {
    update,
    picture: () => (shown ? [{ title: "", svg: chips(shown.found) }, { title: "Alignment", svg: mapCard.hidden ? null : map.querySelector("svg") }] : []),
  };
}
