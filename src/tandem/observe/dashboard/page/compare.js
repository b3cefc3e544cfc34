// Several runs in one figure, against steps, tokens or time.

import { at, make, say } from "./element.js";
import { Board } from "./figures.js";

const AGAIN_MS = 5000;
const HEIGHT = 460;
const QUANTITIES = {
  loss: "training loss", valid_loss: "valid loss", bleu: "BLEU", learning_rate: "learning rate",
  gradient_norm: "gradient norm", throughput: "target tokens a second",
};
const AGAINST = { steps: "steps", tokens: "target tokens", time: "time" };

export class Compare {
  #board = new Board();
  #chart = null;
  #timer = 0;
  #asked = null;
  #runs = [];
  #chosen;

  constructor(address) {
    this.#chosen = new Set((address.searchParams.get("runs") || "").split(",").filter(Boolean));
    this.#fill(at("quantity"), QUANTITIES, address.searchParams.get("quantity") || "loss");
    this.#fill(at("against"), AGAINST, address.searchParams.get("against") || "steps");
  }

  #fill(select, options, chosen) {
    select.replaceChildren(...Object.entries(options).map(([value, text]) => make("option", { value }, text)));
    if (chosen in options) select.value = chosen;
    select.onchange = () => this.#change();
  }

  open() {
    at("compare").hidden = false;
    document.title = "Runs compared · Tandem";
    this.#ask();
  }

  close() {
    clearTimeout(this.#timer);
    this.#asked?.abort();
    this.#board.clear();
    at("compare").hidden = true;
    at("compared").querySelectorAll("label").forEach((label) => label.remove());
  }

  take(runs) {
    const known = runs.map(({ key }) => key).join("\n");
    if (known === this.#runs.map(({ key }) => key).join("\n")) {
      this.#runs = runs;
      return;
    }
    this.#runs = runs;
    at("compared").querySelectorAll("label").forEach((label) => label.remove());
    at("compared").append(...runs.map(({ key, name }) => {
      const box = make("input", { type: "checkbox", value: key });
      box.checked = this.#chosen.has(key);
      box.addEventListener("change", () => {
        if (box.checked) this.#chosen.add(key); else this.#chosen.delete(key);
        this.#change();
      });
      return make("label", {}, box, ` ${name}`);
    }));
  }

  // Another question is another figure: what was zoomed into has other axes there.
  #change() {
    if (this.#chart !== null) this.#board.remove(this.#chart);
    this.#chart = null;
    history.replaceState(null, "", `/compare?${this.#query()}`);
    this.#ask();
  }

  #query() {
    const runs = [...this.#chosen].map(encodeURIComponent).join(",");
    return `runs=${runs}&quantity=${at("quantity").value}&against=${at("against").value}`;
  }

  async #ask() {
    clearTimeout(this.#timer);
    this.#asked?.abort();
    const asked = (this.#asked = new AbortController());
    say(at("compare-note"), this.#chosen.size ? "" : "Choose two runs or more.");
    if (!this.#chosen.size) return;
    try {
      const answer = await fetch(`/api/compare?${this.#query()}`, { signal: asked.signal });
      const told = await answer.json();
      if (asked.signal.aborted) return;
      if (answer.ok) this.#show(told);
      else say(at("compare-note"), told.error);
    } catch (error) {
      if (error.name === "AbortError") return;
      say(at("compare-note"), "⚠ The server does not answer, trying again.");
    }
    const isGoingOn = this.#runs.some(({ key, is_closed }) => this.#chosen.has(key) && !is_closed);
    if (isGoingOn || !this.#runs.length) this.#timer = setTimeout(() => this.#again(), AGAIN_MS);
  }

  #again() {
    if (document.visibilityState === "visible") this.#ask();
    else this.#timer = setTimeout(() => this.#again(), AGAIN_MS);
  }

  #show(payload) {
    payload.figure.layout.height = HEIGHT;
    if (this.#chart === null) {
      this.#chart = this.#board.add(payload.name || "overlay");
      at("overlay").append(this.#chart.element);
    }
    this.#chart.take(payload);
  }
}
