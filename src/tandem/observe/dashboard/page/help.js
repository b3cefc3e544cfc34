// "What is this?": a sentence or two, and below it more, fetched when it is opened.

import { make, say } from "./element.js";

const texts = new Map();

function load(name) {
  if (!texts.has(name)) {
    const loading = fetch(`/assets/${encodeURIComponent(name)}.html`).then((answer) => {
      if (!answer.ok) throw new Error(answer.statusText);
      return answer.text();
    });
    texts.set(name, loading);
    loading.catch(() => texts.delete(name));
  }
  return texts.get(name);
}

const elsewhere = (name) =>
  name.startsWith("section-") ? `it is also in docs/verdicts.md, section “${name.slice("section-".length)}”` : "open this again";

export class Help {
  element;
  #isHeaded;
  #text = make("p");
  #more = make("div", { class: "section" });
  #name = "";
  #shown = "";

  // Beside an answer, its question need not be said again.
  constructor({ isHeaded = true } = {}) {
    this.#isHeaded = isHeaded;
    this.element = make("details", { class: "help" }, make("summary", {}, "What is this?"), this.#text, this.#more);
    this.element.addEventListener("toggle", () => this.#open());
  }

  // The section of docs/verdicts.md about a question.
  take(text, key) {
    this.#take(text || "", key ? `section-${key}` : "");
  }

  // What each of several numbers means.
  explain(kind) {
    this.#take("", `terms-${kind}`);
  }

  #take(text, name) {
    say(this.#text, text);
    this.#text.hidden = !text;
    this.#name = name;
    this.element.hidden = !text && !name;
    this.#open();
  }

  async #open() {
    const name = this.#name;
    if (!this.element.open || !name || name === this.#shown) return;
    this.#shown = name;
    try {
      // Part of the program, not of a run; the parser runs no scripts.
      const parsed = new DOMParser().parseFromString(await load(name), "text/html");
      if (!this.#isHeaded) parsed.querySelector("header")?.remove();
      if (this.#shown === name) this.#more.replaceChildren(...parsed.body.childNodes);
    } catch {
      this.#shown = "";
      this.#more.replaceChildren(make("p", { class: "note" }, `More could not be fetched; ${elsewhere(name)}.`));
    }
  }
}

export function explained(kind) {
  const help = new Help();
  help.explain(kind);
  return help.element;
}
