/* What happens inside a recurrent cell, told by its formulas. No document is touched here. */

import { fixed } from "./dom.js";

const SIGNS = { "cell before": "c′", "forget gate": "f", "input gate": "i", cell: "c", "output gate": "o", "state before": "h′", "reset gate": "r", "update gate": "z", state: "h" };
const FORMULAS = {
  LSTM: ["f, i, o = σ(W x + U h′ + b), each with its own W, U and b", "g = tanh(W x + U h′ + b)", "c = f · c′ + i · g", "h = o · tanh(c)"],
  GRU: ["r, z = σ(W x + U h′ + b), each with its own W, U and b", "n = tanh(W x + b + r · (U h′ + b))", "h = (1 − z) · n + z · h′"],
  RNN: ["h = tanh(W x + U h′ + b)"],
};
const TELLS = {
  LSTM: "An LSTM cell reads a word x and its own last state h′. Three gates between 0 and 1 decide what it forgets of its memory c′, what it lets in, and what it shows.",
  GRU: "A GRU cell reads a word x and its own last state h′. The update gate z decides how much of that state stays, the reset gate r how much of it the new proposal sees.",
  RNN: "A simple cell: the new state is a squashed sum of the word and of the last state. Nothing protects what it knew before.",
};

export const cellKind = (gates) => ("cell" in gates ? "LSTM" : "update gate" in gates ? "GRU" : "RNN");

export const cellTells = (gates, backward) => `${TELLS[cellKind(gates)]}${backward ? " This one reads from right to left." : ""}`;

export const formulasOf = (gates) => FORMULAS[cellKind(gates)];

/* The name of a row, with its sign in the formulas. */
export const rowName = (name, gates) => `${name} ${SIGNS[name] ?? (cellKind(gates) === "GRU" ? "n" : "g")}`;

/* The formulas with the numbers of one place. */
export function workedOut(gates, row, at) {
  const value = (name) => fixed(gates[name][row][at], 3);
  if (cellKind(gates) === "LSTM") return [
    `c = f · c′ + i · g = ${value("forget gate")} · ${value("cell before")} + ${value("input gate")} · ${value("candidate")} = ${value("cell")}`,
    `h = o · tanh(c) = ${value("output gate")} · tanh(${value("cell")}) = ${value("state")}`,
  ];
  if (cellKind(gates) === "GRU") return [`h = (1 − z) · n + z · h′ = (1 − ${value("update gate")}) · ${value("candidate")} + ${value("update gate")} · ${value("state before")} = ${value("state")}`];
  return [];
}
