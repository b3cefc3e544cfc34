// The page: which view an address means, and the list of runs that all views share.

import { Compare } from "./compare.js";
import { at, make, say } from "./element.js";
import { Overview } from "./overview.js";
import { RunView } from "./run.js";

const LIST_MS = 5000;
let view = null;
let runs = [];
let timer = 0;

function keyOf(path) {
  if (!path.startsWith("/run/")) return null;
  const written = path.slice("/run/".length);
  try {
    return decodeURIComponent(written);
  } catch {
    return written; // no text in UTF-8, and so no run's name: it is shown as it is
  }
}

function build(address) {
  if (address.pathname === "/compare") return new Compare(address);
  const key = keyOf(address.pathname) ?? (runs.length === 1 ? runs[0].key : null);
  return key === null ? new Overview(follow) : new RunView(key);
}

function show() {
  view?.close();
  view = build(new URL(location.href));
  view.open();
  view.take?.(runs);
  paintSwitch();
}

function follow(address) {
  history.pushState(null, "", address);
  show();
  scrollTo(0, 0);
}

function paintSwitch() {
  const isSeveral = runs.length > 1;
  at("switch").hidden = at("to-compare").hidden = !isSeveral;
  if (!isSeveral) return;
  const select = at("runs"), chosen = keyOf(location.pathname) ?? "";
  const options = [["", "all runs"], ...runs.map(({ key, name }) => [key, name])];
  const told = JSON.stringify(options);
  if (select.dataset.told !== told) {
    select.dataset.told = told;
    select.replaceChildren(...options.map(([value, text]) => make("option", { value }, text)));
  }
  select.value = chosen;
}

// A single run tells of itself through its stream; a list is asked for while somebody looks.
async function list() {
  clearTimeout(timer);
  if (document.visibilityState === "visible") {
    try {
      const answer = await fetch("/api/runs");
      if (answer.ok) take((await answer.json()).runs);
      else if (view === null) complain("The server asks for its token: open the address that tandem dashboard has printed.");
    } catch {
      if (!(view instanceof RunView)) complain("The server does not answer, trying again.");
    }
  }
  timer = setTimeout(list, LIST_MS);
}

function take(found) {
  const wasLone = runs.length === 1;
  runs = found;
  if (!(view instanceof RunView)) at("connection").hidden = true;
  // A second run turns the first page into a list, but not under the eyes of who reads it.
  if (view === null || (view instanceof Overview && runs.length === 1 && !wasLone)) show();
  else view.take?.(runs);
  if (view instanceof RunView) view.hear(runs);
  paintSwitch();
}

function complain(sentence) {
  at("connection").hidden = false;
  say(at("connection"), `⚠ ${sentence}`);
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='/']");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  follow(link.getAttribute("href"));
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  const content = document.querySelector("main:not([hidden]) [role=tabpanel]:not([hidden]), main:not([hidden]) h1");
  if (!content) return;
  if (!content.hasAttribute("tabindex")) content.tabIndex = -1;
  content.focus();
});
at("runs").addEventListener("change", ({ target }) => follow(target.value ? `/run/${encodeURIComponent(target.value)}` : "/"));
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && list());
addEventListener("popstate", show);
if (keyOf(location.pathname) !== null) show();
list();
