// Figures on the page: drawn while they are near the screen, redrawn as they change, finer where one looks closely.

import { make, say } from "./element.js";
import { Help } from "./help.js";

const NEAR = "250px";
const FAR = "2000px";
const REFINE_MS = 250;
const LEFT_OUT = new Set(["time_split", "checkpoint_parts", "dropped", "lengths"]);
const TIMELINES = new Set(["gpus", "network", "cpu"]);
const FEWEST = 4;
const CONFIG = { responsive: true, displayModeBar: false, doubleClick: false };

let plotly = null;

// Megabytes that an overview of runs does not need; a load that failed is tried again with the next figure.
export function loadPlotly() {
  plotly ??= new Promise((resolve, reject) => {
    const script = make("script", { src: "/assets/plotly.js" });
    script.addEventListener("load", () => resolve(window.Plotly));
    script.addEventListener("error", () => {
      plotly = null;
      script.remove();
      reject(new Error("The figures could not be loaded."));
    });
    document.head.append(script);
  });
  return plotly;
}

const LONGEST_TURN_MS = 5000;
let turn = Promise.resolve();

// One figure at a time, and the page in between: each is seen as soon as it is drawn, and clicks are heard.
function inTurn(draw) {
  const done = turn.then(draw);
  const isOver = Promise.race([done.catch(() => {}), new Promise((go) => setTimeout(go, LONGEST_TURN_MS))]);
  turn = isOver.then(() => new Promise((go) => setTimeout(go)));
  return done;
}

const axisOf = ({ figure }) => figure.layout.xaxis?.title?.text;

// The places of all points on the x axis, in order.
function placesOf({ figure }) {
  const places = new Set(figure.data.flatMap(({ x }) => x ?? []).filter(Number.isFinite));
  return [...places].sort((one, other) => one - other);
}

// From where to where there is something: some axes say so themselves.
function endsOf(payload) {
  const places = placesOf(payload);
  return payload.figure.layout.xaxis?.range ?? [places[0], places.at(-1)];
}

// A stretch inside of what there is and not narrower than a few points; null where it would be all.
function inside([from, to], [first, last], points) {
  const middle = (from + to) / 2;
  const next = points.findIndex((place) => place >= middle), here = next < 0 ? points.length - 1 : next;
  const least = points[Math.min(points.length - 1, here + FEWEST / 2)] - points[Math.max(0, here - FEWEST / 2)];
  const width = Math.max(to - from, least);
  if (!(width < last - first)) return null;
  const begin = Math.min(Math.max(middle - width / 2, first), last - width);
  return [begin, begin + width];
}

// A finger that scrolls the page must not zoom.
const hasMouse = () => matchMedia("(pointer: fine)").matches;

class Chart {
  element;
  name;
  isNear = false;
  zoom = null;
  #board;
  #plot;
  #title;
  #help = new Help();
  #whole;
  #live = null;
  #shown = null;
  #zooms = 0;
  #seen = null;
  #revision = 0;
  #isDue = false;
  #isDrawn = false;
  #drawing = Promise.resolve();

  constructor(board, name) {
    this.#board = board;
    this.name = name;
    this.#title = make("h3");
    this.#plot = make("div", { class: "plot", role: "img" }, make("p", { class: "note" }, "The figure is on its way."));
    this.#whole = this.#tool("Whole run", "⤢ whole", () => board.zoom(name, null));
    this.#whole.hidden = true;
    const tools = make(
      "div", { class: "tools", role: "group" }, this.#whole,
      this.#tool("Earlier", "‹", () => this.#move(-0.5)), this.#tool("Later", "›", () => this.#move(0.5)),
      this.#tool("Zoom out", "−", () => this.#scale(2)), this.#tool("Zoom in", "+", () => this.#scale(0.5)),
    );
    const head = make("div", { class: "head" }, this.#title);
    if (board.isZoomable(name)) head.append(tools);
    this.element = make("figure", { class: "chart waiting", "data-name": name }, head, this.#plot, this.#help.element);
  }

  #tool(title, text, act) {
    const button = make("button", { type: "button", title, "aria-label": title }, text);
    button.addEventListener("click", act);
    return button;
  }

  take(payload) {
    const unit = axisOf(payload);
    const isOther = this.#live !== null && unit !== axisOf(this.#live);
    this.#live = payload;
    // A run that grows from minutes to hours has another axis, on which the stretch lies elsewhere.
    if (isOther && this.zoom !== null) this.#board.zoom(this.name, null);
    this.element.classList.remove("waiting");
    say(this.#title, payload.title);
    this.#help.take(payload.meaning, payload.section);
    if (this.zoom === null) this.show(payload);
  }

  show(payload) {
    this.#shown = payload;
    this.#plot.setAttribute("aria-label", payload.alternative);
    if (this.isNear) this.draw();
  }

  // One drawing after the other: plotly must not be called again while it draws. What comes meanwhile is drawn once.
  draw() {
    if (this.#isDue) return;
    this.#isDue = true;
    const draw = () => {
      this.#isDue = false;
      return this.#draw();
    };
    this.#drawing = this.#drawing.then(() => inTurn(draw)).catch((error) => this.#fail(error));
  }

  #fail(error) {
    if (this.#isDrawn) return;
    this.#plot.replaceChildren(make("p", { class: "note" }, error.message));
  }

  async #draw() {
    const Plotly = await loadPlotly();
    if (this.#shown === null || !this.isNear || !this.element.isConnected) return;
    const seen = { payload: this.#shown, zooms: this.#zooms };
    if (this.#isDrawn && this.#seen?.payload === seen.payload && this.#seen.zooms === seen.zooms) return;
    const { data, layout } = seen.payload.figure;
    if (!data.length) throw new Error(seen.payload.alternative);
    // What lies below must not jump while a figure is away.
    this.#plot.style.minHeight = `${layout.height}px`;
    if (!this.#isDrawn) this.#plot.replaceChildren();
    await Plotly.react(this.#plot, data.map((trace) => ({ ...trace })), this.#layout(layout), CONFIG);
    if (!this.#isDrawn) this.#listen();
    this.#isDrawn = true;
    this.#seen = seen;
  }

  // A copy, for plotly writes into what it is given; people zoom along the x axis only.
  #layout(layout) {
    const made = structuredClone(layout);
    made.uirevision = this.name;
    // Of data that it holds for the same, plotly forgets from where to where they go.
    made.datarevision = this.#revision += 1;
    made.dragmode = this.#board.isZoomable(this.name) && hasMouse() ? "zoom" : false;
    for (const [key, axis] of Object.entries(made))
      if (/^[xy]axis\d*$/.test(key)) axis.fixedrange = key !== "xaxis" || !made.dragmode;
    made.xaxis.uirevision = this.#zooms;
    if (this.zoom !== null) Object.assign(made.xaxis, { range: [...this.zoom], autorange: false });
    return made;
  }

  #listen() {
    this.#plot.on("plotly_relayout", (change) => {
      const from = change["xaxis.range[0]"], to = change["xaxis.range[1]"];
      if (from === undefined || to === undefined) return;
      this.#zoom([Number(from), Number(to)]);
      // Plotly has moved already, and keeps to that where all is shown as before.
      const whole = this.#live?.figure.layout.xaxis?.range;
      if (this.zoom === null) window.Plotly.relayout(this.#plot, whole ? { "xaxis.range": [...whole] } : { "xaxis.autorange": true });
    });
    this.#plot.on("plotly_doubleclick", () => this.#board.zoom(this.name, null));
  }

  // From here on the range is shown as it is drawn: what comes live waits until the whole is asked for again.
  look(range) {
    if (range === null && this.zoom === null) return;
    this.zoom = range;
    this.#zooms += 1;
    this.#whole.hidden = range === null;
    const payload = range === null ? this.#live : this.#shown;
    if (payload !== null) this.show(payload);
  }

  #range() {
    return this.zoom ?? this.#plot.layout?.xaxis?.range?.map(Number);
  }

  #move(share) {
    const range = this.#range();
    if (range) this.#zoom(range.map((end) => end + share * (range[1] - range[0])));
  }

  #scale(factor) {
    const range = this.#range();
    if (!range) return;
    const middle = (range[0] + range[1]) / 2, half = (factor * (range[1] - range[0])) / 2;
    this.#zoom([middle - half, middle + half]);
  }

  // What is shown is finer than what is live, and so has the points that are nearest to one another.
  #zoom(range) {
    if (this.#live !== null) this.#board.zoom(this.name, inside(range, endsOf(this.#live), placesOf(this.#shown)));
  }

  purge() {
    this.#drawing = this.#drawing.then(() => {
      // By its turn it may have come back.
      if (!this.#isDrawn || (this.isNear && this.element.isConnected)) return;
      this.#isDrawn = false;
      const used = this.#plot;
      window.Plotly.purge(used);
      // A new element: plotly leaves listeners on the one that it has used.
      this.#plot = make("div", { class: "plot", role: "img", "aria-label": used.getAttribute("aria-label") ?? "" });
      this.#plot.style.minHeight = used.style.minHeight;
      used.replaceWith(this.#plot);
    });
  }
}

// All figures of a view; says through `onWanted` when other ones have come near the screen.
export class Board {
  #charts = new Map();
  #latest = new Map();
  #onWanted;
  #finer;
  #timer = 0;
  #asked = null;
  #near = new IntersectionObserver((seen) => this.#come(seen), { rootMargin: NEAR });
  #far = new IntersectionObserver((seen) => this.#go(seen), { rootMargin: FAR });

  // `finer(name, [from, to], signal)` gives the figure of a stretch; without it zooming shows what is there.
  constructor({ onWanted = () => {}, finer = null } = {}) {
    this.#onWanted = onWanted;
    this.#finer = finer;
  }

  isZoomable(name) {
    return !LEFT_OUT.has(name);
  }

  add(name) {
    const chart = new Chart(this, name);
    this.#charts.set(chart.element, chart);
    this.#near.observe(chart.element);
    this.#far.observe(chart.element);
    if (this.#latest.has(name)) chart.take(this.#latest.get(name));
    return chart;
  }

  remove(chart) {
    this.#near.unobserve(chart.element);
    this.#far.unobserve(chart.element);
    chart.purge();
    chart.element.remove();
    this.#charts.delete(chart.element);
  }

  clear() {
    clearTimeout(this.#timer);
    this.#asked?.abort();
    for (const chart of [...this.#charts.values()]) this.remove(chart);
    this.#latest.clear();
  }

  take(payload) {
    this.#latest.set(payload.name, payload);
    for (const chart of this.#called(payload.name)) chart.take(payload);
  }

  wanted() {
    return [...new Set([...this.#charts.values()].filter(({ isNear }) => isNear).map(({ name }) => name))].sort();
  }

  zoom(name, range) {
    const names = TIMELINES.has(name) ? [...TIMELINES] : [name];
    const charts = names.flatMap((each) => this.#called(each));
    for (const chart of charts) chart.look(range);
    clearTimeout(this.#timer);
    this.#asked?.abort();
    this.#asked = null;
    if (range !== null && this.#finer !== null) this.#timer = setTimeout(() => this.#refine(charts, range), REFINE_MS);
  }

  async #refine(charts, range) {
    const asked = (this.#asked = new AbortController());
    for (const name of new Set(charts.map((chart) => chart.name))) {
      try {
        const payload = await this.#finer(name, range, asked.signal);
        if (asked.signal.aborted) return;
        for (const chart of charts) if (chart.name === name) chart.show(payload);
      } catch {
        // The coarser figure stays, which is true as well.
      }
    }
  }

  #called(name) {
    return [...this.#charts.values()].filter((chart) => chart.name === name);
  }

  #come(seen) {
    for (const { target, isIntersecting } of seen) {
      const chart = this.#charts.get(target);
      if (chart === undefined || chart.isNear === isIntersecting) continue;
      chart.isNear = isIntersecting;
      if (isIntersecting) chart.draw();
    }
    this.#onWanted();
  }

  #go(seen) {
    // Of several looks at one figure the last one counts.
    const latest = new Map(seen.map(({ target, isIntersecting }) => [target, isIntersecting]));
    for (const [target, isIntersecting] of latest) {
      const chart = this.#charts.get(target);
      if (isIntersecting || chart === undefined) continue;
      chart.isNear = false;  // which the other observer may say later
      chart.purge();
    }
  }
}
