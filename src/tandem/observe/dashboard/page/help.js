// "What is this?": a sentence or two, and below it the section of docs/verdicts.md, fetched when it is opened.

import { make, say } from "./element.js";

const sections = new Map();

function load(key) {
  if (!sections.has(key)) {
    const loading = fetch(`/assets/section-${encodeURIComponent(key)}.html`).then((answer) => {
      if (!answer.ok) throw new Error(answer.statusText);
      return answer.text();
    });
    sections.set(key, loading);
    loading.catch(() => sections.delete(key));
  }
  return sections.get(key);
}

export class Help {
  element;
  #text = make("p");
  #more = make("div", { class: "section" });
  #key = "";
  #shown = "";

  constructor() {
    this.element = make("details", { class: "help" }, make("summary", {}, "What is this?"), this.#text, this.#more);
    this.element.addEventListener("toggle", () => this.#open());
  }

  take(text, key) {
    say(this.#text, text || "");
    this.#key = key || "";
    this.element.hidden = !text && !key;
    this.#open();
  }

  async #open() {
    const key = this.#key;
    if (!this.element.open || !key || key === this.#shown) return;
    this.#shown = key;
    try {
      // Part of the program, not of a run; the parser runs no scripts.
      const parsed = new DOMParser().parseFromString(await load(key), "text/html");
      if (this.#shown === key) this.#more.replaceChildren(...parsed.body.childNodes);
    } catch {
      this.#shown = "";
      this.#more.replaceChildren(make("p", { class: "note" }, `More: docs/verdicts.md, section “${key}”.`));
    }
  }
}
