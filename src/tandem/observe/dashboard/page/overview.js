// All runs that the server follows, with how far they are and how good.

import { at, duration, fixed, make, paintStatus, percent, say, statusBox } from "./element.js";

export class Overview {
  #follow;
  #rows = new Map();

  constructor(follow) {
    this.#follow = follow;
  }

  open() {
    at("overview").hidden = false;
    document.title = "Runs · Tandem";
    at("choice").onsubmit = (event) => {
      event.preventDefault();
      this.#follow(`/compare?runs=${this.#chosen().map(encodeURIComponent).join(",")}`);
    };
    at("choice").onchange = () => (at("compare-chosen").disabled = this.#chosen().length < 2);
  }

  close() {
    at("overview").hidden = true;
    at("list").replaceChildren();
    this.#rows.clear();
  }

  take(runs) {
    at("none").hidden = runs.length > 0;
    at("choice").hidden = runs.length < 1;
    const keys = new Set(runs.map(({ key }) => key));
    for (const [key, row] of this.#rows) {
      if (keys.has(key)) continue;
      row.remove();
      this.#rows.delete(key);
    }
    runs.forEach((run, place) => {
      if (!this.#rows.has(run.key)) this.#rows.set(run.key, this.#build(run));
      const row = this.#rows.get(run.key);
      if (at("list").children[place] !== row) at("list").insertBefore(row, at("list").children[place] ?? null);
      this.#paint(row, run);
    });
  }

  #build({ key, name }) {
    const choose = make("input", { type: "checkbox", value: key, "aria-label": `Compare ${name}` });
    const link = make("a", { href: `/run/${encodeURIComponent(key)}` }, name);
    const bar = make("div", { class: "progress", "aria-hidden": "true" }, make("div", { class: "done" }));
    return make("li", {}, choose, link, statusBox(), bar, make("span", { class: "way" }), make("span", { class: "scores" }));
  }

  #paint(row, run) {
    paintStatus(row.querySelector(".status"), run);
    row.querySelector(".status").title = run.status;
    row.querySelector(".progress").style.visibility = run.share === null ? "hidden" : "";
    row.querySelector(".done").style.width = `${100 * (run.share ?? 0)}%`;
    const isAtWork = !run.is_closed && !run.is_silent && run.left_s !== null;
    const way = [run.share === null ? "" : (run.share_text ?? percent(run.share)), run.text, isAtWork ? `${duration(run.left_s)} left` : ""];
    say(row.querySelector(".way"), way.filter(Boolean).join(" · "));
    const scores = [["best BLEU", run.best_bleu, 1], ["best loss", run.best_loss, 3]];
    say(row.querySelector(".scores"), scores.map(([name, value, digits]) => `${name} ${fixed(value, digits)}`).join(" · "));
  }

  #chosen() {
    return [...at("list").querySelectorAll("input:checked")].map(({ value }) => value);
  }
}
