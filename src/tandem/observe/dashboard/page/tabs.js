// Tabs after the ARIA pattern: arrow keys, Home and End move, and the address remembers which is open.

import { make } from "./element.js";

const MOVES = { ArrowRight: (place) => place + 1, ArrowLeft: (place) => place - 1, Home: () => 0, End: () => -1 };

export class Tabs {
  #tabs = [];
  #onOpen;

  // `parts` are [key, title, content]; `onOpen(key)` hears which one is seen.
  constructor(list, panels, parts, onOpen) {
    this.#onOpen = onOpen;
    this.#tabs = parts.map(([key, title, content]) => ({
      key,
      tab: make("button", { type: "button", role: "tab", id: `tab-${key}`, "aria-controls": `panel-${key}` }, title),
      panel: make("div", { role: "tabpanel", id: `panel-${key}`, "aria-labelledby": `tab-${key}`, tabindex: "0" }, content),
    }));
    list.replaceChildren(...this.#tabs.map(({ tab }) => tab));
    panels.replaceChildren(...this.#tabs.map(({ panel }) => panel));
    for (const { key, tab } of this.#tabs) tab.addEventListener("click", () => this.open(key, { isAsked: true }));
    list.onkeydown = (event) => this.#move(event);
    const asked = this.#tabs.find(({ key }) => location.hash === `#${key}`);
    this.open((asked ?? this.#tabs[0]).key);
  }

  open(key, { isAsked = false } = {}) {
    for (const each of this.#tabs) {
      const isOpen = each.key === key;
      each.tab.setAttribute("aria-selected", String(isOpen));
      each.tab.tabIndex = isOpen ? 0 : -1;
      each.panel.hidden = !isOpen;
    }
    if (isAsked) history.replaceState(null, "", `#${key}`);
    this.#onOpen(key);
  }

  #move(event) {
    const place = this.#tabs.findIndex(({ tab }) => tab === event.target);
    if (place < 0 || !(event.key in MOVES)) return;
    event.preventDefault();
    const next = this.#tabs.at(MOVES[event.key](place) % this.#tabs.length);
    next.tab.focus();
    this.open(next.key, { isAsked: true });
  }
}
