"use strict";

const WAIT_MS = 400;
const BEST = 4;
const at = (id) => document.getElementById(id);
const text = at("text"), echo = at("echo"), translation = at("translation"), status = at("status");
const model = at("model"), others = at("others"), more = at("more");

let models = [];
let timer = 0;
let running = null;
let shown = null; // the last answer: { text, translation, links }
let spot = -1; // the word of the translation that the arrow keys are at

// Answers count whole characters; the page's strings count halves of the rarer ones.
const characters = (string) => Array.from(string);

// A word is what spaces part; where a script has none, each of its characters.
const PARTS = /\s+|[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}]|[^\s\p{sc=Han}\p{sc=Hira}\p{sc=Kana}]+/gu;

function words(string) {
  const found = [];
  let place = 0;
  for (const part of string.match(PARTS) || []) {
    const length = characters(part).length;
    found.push({ part, from: place, to: place + length, isWord: /\S/u.test(part) });
    place += length;
  }
  return found;
}

function lay(box, string) {
  box.replaceChildren(...words(string).map(({ part, from, to, isWord }) => {
    if (!isWord) return document.createTextNode(part);
    const span = document.createElement("span");
    span.className = "word";
    span.textContent = part;
    span.dataset.from = from;
    span.dataset.to = to;
    return span;
  }));
}

const overlaps = (span, [from, to]) => Number(span.dataset.from) < to && from < Number(span.dataset.to);

function light(side, place) {
  const other = side === "source" ? "target" : "source";
  const links = shown.links.filter((link) => overlaps({ dataset: place }, link[side]));
  const boxes = { source: echo, target: translation };
  for (const span of boxes[other].querySelectorAll(".word"))
    span.classList.toggle("lit", links.some((link) => overlaps(span, link[other])));
  for (const span of boxes[side].querySelectorAll(".word"))
    span.classList.toggle("lit", links.length > 0 && span.dataset.from === place.from);
}

function unlight() {
  for (const span of document.querySelectorAll(".word.lit")) span.classList.remove("lit");
}

function isFresh() {
  return shown !== null && shown.text === text.value && shown.model === model.value;
}

function say(sentence, isBad = false) {
  status.textContent = sentence;
  status.classList.toggle("bad", isBad);
}

function measure() {
  if (!isFresh()) echo.textContent = text.value + "\n";
  text.style.height = "auto";
  text.style.height = `${text.scrollHeight}px`;
  at("count").textContent = text.value ? `${characters(text.value).length} characters` : "";
  translation.classList.toggle("stale", !isFresh() && translation.textContent !== "");
}

function empty() {
  shown = null;
  spot = -1;
  translation.replaceChildren();
  others.replaceChildren();
  say("");
  measure();
}

async function ask(fields, signal) {
  const headers = { "Content-Type": "application/json" };
  const key = sessionStorage.getItem("key");
  if (key) headers.Authorization = `Bearer ${key}`;
  const answer = await fetch("translate", { method: "POST", headers, body: JSON.stringify(fields), signal });
  const told = await answer.json();
  at("ask-key").hidden = answer.status !== 401 && answer.status !== 403;
  if (!answer.ok) throw new Error(told.error);
  return told.translations[0];
}

async function translate() {
  clearTimeout(timer);
  if (running) running.abort();
  if (!text.value.trim()) return empty();
  const mine = running = new AbortController();
  const asked = { text: text.value, model: model.value, alignment: true };
  if (!others.hidden) asked.best = BEST;
  say("Translating…");
  const begun = performance.now();
  try {
    const told = await ask(asked, mine.signal);
    if (mine !== running) return;
    shown = { text: asked.text, model: asked.model, links: told.alignment };
    spot = -1;
    lay(echo, asked.text);
    lay(translation, told.text);
    list(told.others || []);
    const took = performance.now() - begun;
    say(took < 1000 ? `${took.toFixed(0)} ms` : `${(took / 1000).toFixed(1)} s`);
    measure();
  } catch (error) {
    if (error.name !== "AbortError" && mine === running)
      say(error instanceof TypeError ? "The server does not answer." : error.message, true);
  }
}

function list(alternatives) {
  others.replaceChildren(...alternatives.map(({ text: other, score }) => {
    const item = document.createElement("li");
    item.textContent = other;
    const figure = document.createElement("span");
    figure.className = "score";
    figure.textContent = score === null ? "" : score.toFixed(2);
    item.append(figure);
    return item;
  }));
}

function soon() {
  clearTimeout(timer);
  measure();
  timer = setTimeout(translate, WAIT_MS);
}

function choose() {
  const { source_name, target_name, source, target } = models.find(({ name }) => name === model.value);
  at("source-name").textContent = source_name;
  at("target-name").textContent = target_name;
  text.lang = source;
  translation.lang = target;
}

async function begin() {
  models = (await (await fetch("models")).json()).models;
  const pair = ({ source_name, target_name }) => `${source_name} → ${target_name}`;
  const pairs = models.map(pair);
  model.replaceChildren(...models.map((each) => {
    const option = document.createElement("option");
    option.value = each.name;
    const isOne = pairs.filter((other) => other === pair(each)).length === 1;
    option.textContent = isOne ? pair(each) : `${pair(each)} (${each.name})`;
    return option;
  }));
  choose();
  measure();
  if (text.value) translate();
}

function dress(theme) {
  document.documentElement.dataset.theme = theme;
  at("theme").setAttribute("aria-pressed", String(theme === "dark"));
  at("theme").textContent = theme === "dark" ? "Light" : "Dark";
}

function placeAt(box, event) {
  // The text area lies over the words of the source: the one under the pointer is found by its place.
  for (const span of box.querySelectorAll(".word"))
    for (const area of span.getClientRects())
      if (event.clientX >= area.left && event.clientX < area.right && event.clientY >= area.top && event.clientY < area.bottom)
        return span.dataset;
  return null;
}

function pointed(side, box, event) {
  const place = isFresh() ? placeAt(box, event) : null;
  if (place) light(side, place); else unlight();
}

text.addEventListener("input", soon);
text.addEventListener("mousemove", (event) => pointed("source", echo, event));
text.addEventListener("mouseleave", unlight);
translation.addEventListener("mousemove", (event) => pointed("target", translation, event));
translation.addEventListener("mouseleave", unlight);
translation.addEventListener("blur", unlight);
translation.addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const found = translation.querySelectorAll(".word");
  if (!step || !found.length || !isFresh()) return;
  event.preventDefault();
  spot = Math.min(Math.max(spot + step, 0), found.length - 1);
  light("target", found[spot].dataset);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) translate();
});
at("go").addEventListener("click", translate);
at("clear").addEventListener("click", () => {
  if (running) running.abort();
  clearTimeout(timer);
  text.value = "";
  empty();
  text.focus();
});
at("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(translation.textContent);
    say("Copied.");
  } catch {
    getSelection().selectAllChildren(translation);
    say("Selected: copy it with Ctrl+C.");
  }
});
more.addEventListener("click", () => {
  others.hidden = !others.hidden;
  more.setAttribute("aria-expanded", String(!others.hidden));
  if (!others.hidden) translate();
});
model.addEventListener("change", () => {
  choose();
  translate();
});
at("theme").addEventListener("click", () => {
  const theme = at("theme").getAttribute("aria-pressed") === "true" ? "light" : "dark";
  localStorage.setItem("theme", theme);
  dress(theme);
});
at("ask-key").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("key", at("key").value);
  translate();
});
addEventListener("resize", measure);

dress(localStorage.getItem("theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
begin().catch(() => say("The server does not answer.", true));
