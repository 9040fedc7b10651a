/* Series: a window of the validation part with its forecast, what came, and simple baselines; or a labelled series. */

import { ask } from "./api.js";
import { chart, short } from "./chart.js";
import { bar, card, checkbox, field, moved, ofAll, select, slider } from "./controls.js";
import { h } from "./dom.js";
import { HEADS, palette } from "./scale.js";
import { set, state } from "./state.js";

const SHOWN = 4; // horizons of the window before the forecast
const TELLS = { model: "this run", naive: "the last value, repeated", "seasonal naive": "the last season, repeated", linear: "least squares from the window" };

export function create(root) {
  const controls = h("div", { class: "bar" }), name = h("p", { class: "soft" }), plot = h("div", { class: "drawing" }), answer = h("div", {});
  root.append(card(null, controls, name, plot), card(null, answer));
  let data = null;

  function drawControls(now) {
    const key = [state.run, data.all, data.channels].join();
    if (controls.dataset.key === key) { moved(controls, now + 1, ofAll(data.all)); return; }
    controls.dataset.key = key;
    controls.replaceChildren(slider(data.labels ? "Example" : "Window", 1, data.all, 1, now + 1, ofAll(data.all), (value) => set({ example: value - 1 })),
      data.channels.length > 1 ? field("Channel", select(data.channels.map((each, at) => [String(at), each]), String(state.channel ?? 0), (channel) => set({ channel }))) : "", data.future ? checkbox("The whole window", Boolean(state.whole), (on) => set({ whole: on ? "1" : undefined })) : "");
  }

  const points = (values, from) => values.map((value, at) => [from + at, value]).filter(([, value]) => value !== null);

  /* Known, what came, the forecast and its quantiles, the baselines: the last known value begins each of them. */
  function linesOf(channel) {
    const { text, soft, accent } = palette(), past = data.future && !state.whole ? data.past[channel].slice(-SHOWN * data.future[channel].length) : data.past[channel];
    const known = { name: "known", points: points(past, 1 - past.length), colour: soft };
    if (!data.future) return [known];
    const baselines = Object.keys(data.lines).filter((each) => each !== "model");
    return [known, { name: "what came", points: points(data.future[channel], 1), colour: text }, { name: "forecast", points: points(data.lines.model[channel], 1), colour: accent },
      ...Object.entries(data.quantiles).map(([level, line]) => ({ name: `quantile ${level}`, points: points(line[channel], 1), colour: accent, dash: "1 3" })),
      ...baselines.map((each, at) => ({ name: each, points: points(data.lines[each][channel], 1), colour: HEADS[1 + at], dash: "5 3" }))];
  }

  function drawAnswer() {
    if (data.labels) {
      const ranked = Object.entries(data.labels).sort((a, b) => b[1] - a[1]), right = ranked[0][0] === data.expected;
      answer.replaceChildren(h("h2", {}, "Answer"), h("ol", { class: "others" }, ranked.map(([label, share], at) => h("li", { class: at ? null : "own" }, h("b", { dir: "auto" }, label), bar(share), h("span", { class: "number soft" }, `${(100 * share).toFixed(1)}%`)))),
        h("p", {}, "The data say: ", h("b", { dir: "auto" }, data.expected), h("span", { class: right ? "right" : "wrong" }, right ? " (as the model)" : " (the model says something else)")));
      return;
    }
    const best = Math.min(...Object.values(data.errors).map(({ mse }) => mse ?? Infinity)), told = (value) => (value === null ? "unknown" : short(value));
    answer.replaceChildren(h("h2", {}, "Errors in this window, all channels"), h("div", { class: "table scrolls" }, h("table", { id: "errors" },
      h("thead", {}, h("tr", {}, h("th", { class: "words" }, ""), h("th", {}, "MSE"), h("th", {}, "MAE"))),
      h("tbody", {}, Object.entries(data.errors).map(([each, { mse, mae }]) => h("tr", {}, h("td", { class: "words" }, h("b", {}, each), ` ${TELLS[each] ?? ""}`), h("td", { class: mse === best ? "right" : null }, told(mse)), h("td", {}, told(mae))))))),
    h("p", { class: "soft" }, "In units of the standard deviation of the training part, as in «dragoman evaluate». Green: the smallest. One window says little; «dragoman evaluate» measures them all."));
  }

  async function update() {
    const now = Math.max(0, Number(state.example ?? 0));
    data = await ask("series", { run: state.run, ...(state.checkpoint ? { checkpoint: state.checkpoint } : {}), example: now });
    name.textContent = data.name;
    drawControls(now);
    const channel = Math.min(Number(state.channel ?? 0), data.channels.length - 1);
    plot.replaceChildren(chart(data.channels.length > 1 ? data.channels[channel] : "Series", linesOf(channel), Math.max(300, plot.clientWidth || 900), { axis: data.future ? "steps; the forecast begins at 1" : "steps", unit: "step" }));
    drawAnswer();
    return undefined;
  }

  return { update, picture: () => [{ title: name.textContent, svg: plot.querySelector("svg") }] };
}
