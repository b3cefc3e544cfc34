// The eleven questions with the answers so far, each a line that opens to all that it rests on.

import { make, say } from "./element.js";
import { Help } from "./help.js";

const MARKS = { yes: "●", no: "○", partly: "◐", measured: "■", "cannot tell": "?" };

class Answer {
  element;
  #board;
  #told = "";
  #finding = null;
  #chart = null;
  #head = {};
  #rests = make("div");
  #help = new Help({ isHeaded: false });

  constructor(board) {
    this.#board = board;
    for (const part of ["place", "verdict", "asked", "sure", "glance"]) this.#head[part] = make("span", { class: part });
    this.element = make("details", { class: "question" }, make("summary", {}, ...Object.values(this.#head)), this.#rests, this.#help.element);
    this.element.addEventListener("toggle", () => this.#unfold());
  }

  take(finding) {
    const told = JSON.stringify(finding);
    if (told === this.#told) return;
    this.#told = told;
    this.#finding = finding;
    const { number, verdict, confidence, question, answer, about, section } = finding;
    this.element.dataset.key = finding.key;
    say(this.#head.place, String(number));
    say(this.#head.verdict, `${MARKS[verdict] || ""} ${verdict}`);
    say(this.#head.asked, question);
    say(this.#head.sure, confidence === "none" ? "" : `${confidence} confidence`);
    say(this.#head.glance, answer);
    this.#help.take(about, section);
    if (this.element.open) this.#unfold();
  }

  // What is folded away is not built; a figure is taken down again with it.
  #unfold() {
    const finding = this.#finding;
    const wanted = this.element.open ? finding.figure : "";
    if (this.#chart !== null && this.#chart.name !== wanted) {
      this.#board.remove(this.#chart);
      this.#chart = null;
    }
    this.#rests.replaceChildren(...(this.element.open ? this.#reasons(finding) : []));
    if (wanted && this.#chart === null) {
      this.#chart = this.#board.add(wanted);
      this.element.append(this.#chart.element);
    }
  }

  #reasons({ doubt, advice, missing, evidence, would_change }) {
    const said = (name, label, text) => (text ? [make("p", { class: name }, make("b", {}, label), text)] : []);
    const facts = evidence.map((fact) =>
      make("div", {}, make("dt", {}, fact.name), make("dd", {}, fact.text), make("dd", {}, fact.definition)));
    return [
      ...said("note", "Why not surer: ", doubt),
      ...said("advice", "What to do: ", advice),
      ...said("note", "Not measured: ", missing.join("; ")),
      ...(facts.length ? [make("dl", { class: "facts" }, ...facts)] : []),
      ...said("note", "What would change this: ", would_change),
    ];
  }

  remove() {
    if (this.#chart !== null) this.#board.remove(this.#chart);
    this.element.remove();
  }
}

export class Answers {
  element = make("div", { class: "questions" });
  #board;
  #held = new Map();
  #waiting = make("p", { class: "note" }, "No answer yet: they come as soon as the run has been read.");

  constructor(board) {
    this.#board = board;
    this.element.append(this.#waiting);
  }

  take(findings) {
    this.#waiting.hidden = findings.length > 0;
    const keys = new Set(findings.map(({ key }) => key));
    for (const [key, answer] of this.#held) {
      if (keys.has(key)) continue;
      answer.remove();
      this.#held.delete(key);
    }
    for (const finding of findings) {
      if (!this.#held.has(finding.key)) {
        const answer = new Answer(this.#board);
        this.#held.set(finding.key, answer);
        this.element.append(answer.element);
      }
      this.#held.get(finding.key).take(finding);
    }
  }
}
