// What is known now of evaluations and translations, as a table and pairs of lines.

import { count, duration, fixed, make } from "./element.js";

function table(headings, rows) {
  const cell = (name, scope, place, child) =>
    make(name, { ...(scope ? { scope } : {}), ...(place > 0 ? { class: "number" } : {}) }, child);
  const head = make("tr", {}, ...headings.map((text, place) => cell("th", "col", place, text)));
  const body = rows.map((row) => make("tr", {}, ...row.map((text, place) => cell("td", "", place, text))));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" },
    make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)));
}

// Built anew only where something changed: a table in which somebody reads stays as it is.
class Part {
  element = make("div");
  #told = "";
  #build;

  constructor(build) {
    this.#build = build;
  }

  take(held) {
    const told = JSON.stringify(held);
    if (told === this.#told) return;
    this.#told = told;
    this.element.replaceChildren(...this.#build(held));
  }
}

const best = (value, digits, isBest) => fixed(value, digits) + (isBest && value !== null ? " ★" : "");

// Each evaluation was the best when it was made, or not: the last of those that were is the best of all.
const last = (evaluations, field) => evaluations.findLast((each) => each[field]);

export const evaluationsPart = () => new Part((evaluations) => {
  if (!evaluations.length) return [make("p", { class: "note" }, "No evaluation yet.")];
  const loss = last(evaluations, "is_best_loss"), bleu = last(evaluations, "is_best_bleu");
  const rows = [...evaluations].reverse().map((each) => [
    count(each.step), best(each.valid_loss, 3, each === loss), fixed(each.probe_loss, 3),
    best(each.bleu, 1, each === bleu), fixed(each.chrf, 1), each.duration_s ? duration(each.duration_s) : "–",
  ]);
  return [table(["step", "valid loss", "probe loss", "BLEU", "chrF", "took"], rows), make("p", { class: "note" }, "★ the best so far.")];
});

export const samplesPart = () => new Part((samples) => {
  if (!samples.length) return [make("p", { class: "note" }, "Nothing has been translated yet: an evaluation brings translations.")];
  const line = (side, text, name) => make("p", { class: name }, make("span", { class: "side" }, side), text);
  const pairs = samples.map(({ source, reference, hypothesis }) =>
    make("div", { class: "pair" }, line("source", source, "source"), line("reference", reference, "reference"), line("model", hypothesis, "target")));
  return [make("p", { class: "note" }, `After step ${count(samples[0].step)}.`), ...pairs];
});
