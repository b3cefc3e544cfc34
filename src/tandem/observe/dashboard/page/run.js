// One run, live: where it stands, its figures, its answers and what happened.

import { Answers } from "./answers.js";
import { at, clock, doing, duration, make, milliseconds, paintStatus, percent, say } from "./element.js";
import { Board, loadPlotly } from "./figures.js";
import { explained } from "./help.js";
import { Hosts } from "./hosts.js";
import { Journal } from "./journal.js";
import { Stream } from "./stream.js";
import { evaluationsPart, samplesPart } from "./tables.js";
import { Tabs } from "./tabs.js";

const FIGURES = {
  learning: ["losses", "bleu", "learning_rate", "gradient_norm", "throughput"],
  step: ["anatomy", "step_times", "exchange", "step_bytes", "time_split"],
  hosts: ["gpus", "network", "cpu"],
  data: ["checkpoint_parts", "dropped", "lengths"],
};
const MORE_MS = 250;
const FEWER_MS = 5000;
const MOST_TROUBLES = 5;

const CURES = {
  token: "The server asks for its token: open the address that tandem dashboard has printed.",
  run: "There is no run of this name here now; it is shown as soon as it is there.",
};
const LOST = { run: "no such run", gone: "gone", token: "token needed" };
const shareText = ({ share, share_text }) => share_text ?? percent(share);
const panelOf = (name) => Object.keys(FIGURES).find((panel) => FIGURES[panel].includes(name)) ?? "data";

async function ask(address, signal) {
  const answer = await fetch(address, { signal });
  if (!answer.ok) throw new Error((await answer.json()).error);
  return answer.json();
}

export class RunView {
  #key;
  #board;
  #stream;
  #answers;
  #journal = new Journal();
  #parts = { evaluations: evaluationsPart(), hosts: new Hosts(), samples: samplesPart() };
  #grids = {};
  #charts = new Map();
  #asked = [];
  #timer = 0;
  #state = null;
  #glimpse = null;
  #isGone = false;
  #spoken = "";

  constructor(key) {
    this.#key = key;
    const path = `/api/runs/${encodeURIComponent(key)}`;
    this.#board = new Board({
      onWanted: () => this.#want(),
      finer: (name, [from, to], signal) => ask(`${path}/figures/${name}?from=${from}&to=${to}`, signal),
    });
    this.#answers = new Answers(this.#board);
    this.#stream = new Stream({
      key,
      address: () => `${path}/stream?figures=${this.#asked.join(",")}`,
      events: {
        state: (state) => this.#show(state),
        figures: ({ names }) => this.#arrange(names),
        figure: (payload) => this.#board.take(payload),
        findings: (findings) => this.#answers.take(findings),
        log: (lines) => this.#journal.take(lines),
      },
      onCondition: (condition) => this.#tell(condition),
    });
  }

  open() {
    this.#clear();
    const grid = (panel) => (this.#grids[panel] = make("div", { class: "charts" }));
    const section = (title, ...content) => make("section", {}, make("h2", {}, title), ...content);
    const together = (...content) => make("div", {}, ...content);
    const { evaluations, hosts, samples } = this.#parts;
    new Tabs(at("tabs"), at("panels"), [
      ["learning", "Learning", make("div", { class: "charts" }, grid("learning"), section("Evaluations", evaluations.element, explained("evaluations")), section("Latest translations", samples.element))],
      ["step", "The step", grid("step")],
      ["hosts", "Hosts", together(hosts.element, grid("hosts"))],
      ["data", "Data & checkpoints", grid("data")],
      ["answers", "Answers", this.#answers.element],
      ["log", "Event log", this.#journal.element],
    ], (key) => this.#journal.show(key === "log"));
    at("run").hidden = false;
    // Asked for before they are known to be there, and loaded while the log is read: so the first one comes sooner.
    this.#asked = [...(FIGURES[location.hash.slice(1) || "learning"] ?? [])];
    loadPlotly().catch(() => {});
    this.#stream.open();
  }

  close() {
    clearTimeout(this.#timer);
    this.#stream.close();
    this.#board.clear();
    at("run").hidden = true;
    at("connection").hidden = true;
  }

  // What the run before has left in the header.
  #clear() {
    for (const id of ["name", "equipment", "way"]) say(at(id), "");
    for (const id of ["numbers", "numbers-help", "troubles"]) at(id).replaceChildren();
    for (const id of ["progress", "reading", "connection"]) at(id).hidden = true;
    at("status").removeAttribute("data-doing");
    for (const part of at("status").children) say(part, "");
    say(at("name"), this.#key);
  }

  #arrange(names) {
    for (const name of names) {
      if (this.#charts.has(name)) continue;
      this.#charts.set(name, this.#board.add(name));
    }
    for (const [name, chart] of this.#charts) {
      if (names.includes(name)) continue;
      this.#board.remove(chart);
      this.#charts.delete(name);
    }
    for (const [panel, grid] of Object.entries(this.#grids)) this.#fill(panel, grid, names);
  }

  #fill(panel, grid, names) {
    const order = FIGURES[panel];
    const place = (name) => (order.includes(name) ? order.indexOf(name) : order.length);
    const own = names.filter((name) => panelOf(name) === panel).sort((one, other) => place(one) - place(other));
    const wanted = own.map((name) => this.#charts.get(name).element);
    const isSame = wanted.length === grid.children.length && wanted.every((each, index) => each === grid.children[index]);
    if (wanted.length && isSame) return;
    grid.replaceChildren(...(wanted.length ? wanted : [make("p", { class: "note" }, "Nothing was measured for this so far.")]));
  }

  // What comes near is asked for soon; what has gone, when nobody has scrolled for a while.
  #want() {
    clearTimeout(this.#timer);
    const wanted = this.#board.wanted();
    const isNew = wanted.some((name) => !this.#asked.includes(name));
    if (!isNew && wanted.length === this.#asked.length) return;
    this.#timer = setTimeout(() => {
      this.#asked = this.#board.wanted();
      this.#stream.reopen();
    }, isNew ? MORE_MS : FEWER_MS);
  }

  #show(state) {
    this.#state = state;
    say(at("name"), state.run || this.#key);
    const recipe = state.recipe && state.recipe !== state.run ? `recipe ${state.recipe}` : "";
    say(at("equipment"), [recipe, state.equipment].filter(Boolean).join(" · "));
    paintStatus(at("status"), state);
    this.#announce(doing(state).word);
    this.#showProgress(state);
    this.#showNumbers(state.numbers);
    this.#showTroubles(state);
    at("reading").hidden = state.reading >= 1;
    say(at("reading"), `Reading the log: ${percent(state.reading)}. What is shown is of the part that has been read.`);
    this.#parts.evaluations.take(state.evaluations);
    this.#parts.hosts.take(state.hosts, { isOver: state.is_over });
    this.#parts.samples.take(state.samples);
  }

  // Read aloud only when it changes: numbers change all the time.
  #announce(word) {
    if (word === this.#spoken) return;
    if (this.#spoken) say(at("spoken"), `The run is ${word}.`);
    this.#spoken = word;
  }

  #showProgress({ progress, now_ns, is_silent, ended }) {
    const share = progress?.share ?? 0;
    at("progress").hidden = progress === null;
    at("progress").setAttribute("aria-valuenow", String(Math.floor(100 * share)));
    at("progress").setAttribute("aria-valuetext", progress?.text ?? "");
    at("progress").firstElementChild.style.width = `${100 * share}%`;
    const words = progress === null ? [] : [shareText(progress), progress.text];
    const isAtWork = !ended && !is_silent && progress !== null && progress.left_s !== null;
    if (isAtWork) {
      const end = clock(milliseconds(now_ns) + 1000 * progress.left_s, { seconds: false });
      words.push(`${duration(progress.left_s)} left`, `ends about ${end}`);
    }
    say(at("way"), words.join(" · "));
    this.#entitle();
  }

  // What a tab shows of the run while another one is looked at.
  #entitle(trouble = "") {
    const seen = this.#state ?? this.#glimpse ?? {}, { progress = null, run } = seen;
    const { word, symbol } = this.#isGone ? { word: "gone", symbol: "⚠" } : doing(seen);
    const told = trouble ? `⚠ ${trouble}` : `${progress === null ? "" : `${shareText(progress)} `}${symbol} ${word}`;
    document.title = `${told} · ${run || this.#key} · Tandem`;
  }

  // The list of runs knows sooner than the stream whether this one is still there.
  hear(runs) {
    const wasGone = this.#isGone;
    this.#isGone = !runs.some(({ key }) => key === this.#key);
    if (this.#isGone !== wasGone && this.#state !== null && at("connection").hidden) this.#entitle();
  }

  // A long log takes a second to read, and the list is there at once: what it tells stands until then.
  take(runs) {
    const listed = runs.find(({ key }) => key === this.#key);
    if (listed && this.#state === null) this.#glance(listed);
  }

  #glance({ name, share, share_text, text, left_s, ...listed }) {
    const progress = share === null ? null : { share, share_text, text, left_s };
    this.#glimpse = { ...listed, run: name, progress, now_ns: 1e6 * Date.now() };
    paintStatus(at("status"), this.#glimpse);
    if (at("connection").hidden) this.#showProgress(this.#glimpse);
  }

  #showNumbers(numbers) {
    const box = at("numbers");
    if (!at("numbers-help").children.length) at("numbers-help").append(explained("numbers"));
    if (box.children.length !== numbers.length)
      box.replaceChildren(...numbers.map(() => make("div", {}, make("dt"), make("dd"))));
    numbers.forEach(({ name, value }, place) => {
      const [title, text] = box.children[place].children;
      say(title, name);
      say(text, value);
    });
  }

  #showTroubles({ troubles, is_silent, is_lost, last_time_ns }) {
    const told = troubles.map(({ time_ns, text }) => `⚠ ${clock(milliseconds(time_ns))} ${text}`).reverse();
    if (is_silent && !is_lost && !this.#isGone) told.unshift(`⚠ Nothing has been heard of the run since ${clock(milliseconds(last_time_ns))}: it may have been killed, or cannot write its log.`);
    const left = told.length - MOST_TROUBLES;
    if (left > 0) told.splice(MOST_TROUBLES, left, `… and ${left} more, in the event log.`);
    const box = at("troubles");
    box.hidden = !told.length;
    while (box.children.length > told.length) box.lastElementChild.remove();
    while (box.children.length < told.length) box.append(make("li"));
    told.forEach((text, place) => say(box.children[place], text));
  }

  #tell({ kind, since, why }) {
    const box = at("connection");
    const isLost = kind === "lost";
    at("run").classList.toggle("stale", isLost);
    const wasLost = !box.hidden;
    box.hidden = !isLost;
    if (!isLost) {
      if (wasLost) say(at("spoken"), "The connection is back.");
      return;
    }
    say(box, `⚠ ${CURES[why] ?? `Connection lost at ${clock(since)}, trying again. What is shown is of then.`}`);
    if (!wasLost) say(at("spoken"), "Connection lost, trying again.");
    this.#entitle(LOST[why === "run" && this.#state !== null ? "gone" : why] ?? "connection lost");
  }
}
