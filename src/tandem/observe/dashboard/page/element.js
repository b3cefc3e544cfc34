// Elements and words: text from a run is only ever set as text, so that it cannot become markup.

export const at = (id) => document.getElementById(id);

export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

// Setting what is there already would make a screen reader and a selection start again.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const MINUTE_S = 60, HOUR_S = 3600, DAY_S = 86400;
const two = (number) => String(number).padStart(2, "0");

export function duration(seconds) {
  const whole = Math.round(seconds);
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (whole < MINUTE_S) return `${whole} s`;
  if (whole < HOUR_S) return `${Math.floor(whole / MINUTE_S)} min ${two(whole % MINUTE_S)} s`;
  if (whole < DAY_S) return `${Math.floor(whole / HOUR_S)} h ${two(Math.floor((whole % HOUR_S) / MINUTE_S))} min`;
  return `${Math.floor(whole / DAY_S)} d ${Math.floor((whole % DAY_S) / HOUR_S)} h`;
}

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const SHORT = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const DAY = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short" });

// Clock time, with the day where it is not today.
export function clock(ms, { seconds = true } = {}) {
  const time = (seconds ? CLOCK : SHORT).format(ms);
  return new Date(ms).toDateString() === new Date().toDateString() ? time : `${DAY.format(ms)} ${time}`;
}

export const milliseconds = (ns) => ns / 1e6;
export const percent = (share) => `${Math.floor(100 * share)} %`;
export const count = (number) => number.toLocaleString("en");
export const fixed = (number, digits) => (number === null || number === undefined ? "–" : number.toFixed(digits));

const LOOKS = {
  starting: "◌", preparing: "◌", training: "●", evaluating: "◆", restarting: "↻", silent: "⚠", lost: "⚠", damaged: "✗",
  finished: "✓", imported: "✓", stopped: "■", failed: "✗", unread: "?",
};

// One word for what a run is doing, with its symbol: colour alone tells nothing.
export function doing({ doing: at_work, is_silent, is_lost }) {
  const quiet = is_lost ? "lost" : "silent";
  const word = is_silent ? quiet : at_work;
  return { word, symbol: LOOKS[word] || "?" };
}

export function paintStatus(box, run) {
  const { word, symbol } = doing(run);
  box.dataset.doing = word;
  say(box.querySelector(".symbol"), symbol);
  say(box.querySelector(".word"), run.status || word);
}

export function statusBox() {
  return make("span", { class: "status" }, make("span", { class: "symbol", "aria-hidden": "true" }), make("span", { class: "word" }));
}
