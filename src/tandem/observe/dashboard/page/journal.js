// The event log of a run, newest first: what happened, when, and where.

import { clock, make, milliseconds, say } from "./element.js";

const MOST = 500;

export class Journal {
  element;
  #from = 0;
  #lines = [];
  #rows = make("tbody");
  #told = make("p", { class: "note" });
  #filter = make("input", { type: "search", placeholder: "as: checkpoint, warning, node-b", autocomplete: "off" });
  #isShown = false;

  constructor() {
    const head = make("tr", {}, ...["time", "where", "what"].map((name) => make("th", { scope: "col" }, name)));
    const table = make("table", { class: "journal stacked" }, make("thead", {}, head), this.#rows);
    this.element = make("div", {}, make("label", { class: "filter" }, "Show only ", this.#filter), this.#told, table);
    this.#filter.addEventListener("input", () => this.#draw());
  }

  // `from` counts lines since the run began, so that what is here already is not taken twice.
  take({ from, lines }) {
    const kept = from - this.#from;
    const isNext = kept >= 0 && kept <= this.#lines.length;
    const held = isNext ? [...this.#lines.slice(0, kept), ...lines] : lines;
    this.#from = isNext ? this.#from : from;
    this.#from += Math.max(0, held.length - MOST);
    this.#lines = held.slice(-MOST);
    if (this.#isShown) this.#draw();
  }

  show(isShown) {
    this.#isShown = isShown;
    if (isShown) this.#draw();
    else this.#rows.replaceChildren();
  }

  #draw() {
    const wanted = this.#filter.value.trim().toLowerCase();
    const found = this.#lines.filter((line) => !wanted || this.#words(line).some((word) => word.toLowerCase().includes(wanted)));
    const rows = found.map((line) => make("tr", {}, ...this.#words(line).map((word) => make("td", {}, word))));
    this.#rows.replaceChildren(...rows.reverse());
    const before = this.#from ? `; ${this.#from.toLocaleString("en")} earlier ones are in the run's log` : "";
    say(this.#told, `${found.length} of ${this.#lines.length} events, newest first${before}.`);
  }

  #words({ time_ns, host, rank, text }) {
    const where = [host, rank === null || rank === undefined ? "" : `rank ${rank}`].filter(Boolean).join(", ");
    return [clock(milliseconds(time_ns)), where, text];
  }
}
