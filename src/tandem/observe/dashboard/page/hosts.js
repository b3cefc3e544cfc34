// What the hosts do now, or did when the run ended: one line for all, that opens to a line each, that opens to every device.

import { duration, make, percent, say } from "./element.js";

const FEW = 4;
const isKnown = (value) => value !== null && value !== undefined;
const known = (value, text) => (isKnown(value) ? [text(value)] : []);
const rate = (bytes) => `${(bytes / 1e6).toFixed(1)} MB/s`;
const carried = (nic) => (nic.sent_bytes_per_s ?? 0) + (nic.received_bytes_per_s ?? 0);

const hundredth = (share) => Math.floor(100 * share);
const whole = (value) => value.toFixed(0);

function range(values, text, unit) {
  const told = values.filter(isKnown);
  if (!told.length) return [];
  const [low, high] = [Math.min(...told), Math.max(...told)].map(text);
  return [`${low === high ? high : `${low}–${high}`}${unit}`];
}

// The words for one GPU, or for several from the lowest to the highest.
function gpuWords(gpus) {
  const of = (field, text, unit) => range(gpus.map((gpu) => gpu[field]), text, unit);
  const limit = known(gpus[0].power_limit_w || null, (watts) => ` of ${whole(watts)}`).join("");
  const throttled = gpus.filter((gpu) => gpu.is_throttled).length;
  return [
    ...of("utilisation", hundredth, " % busy"), ...of("memory", hundredth, " %").map((text) => `memory ${text}`),
    ...of("power_w", whole, `${limit} W`), ...of("temperature_c", whole, " °C"),
    ...(throttled ? [gpus.length > 1 ? `⚠ ${throttled} throttled` : "⚠ throttled"] : []),
  ];
}

function gpuLine(gpus) {
  if (!gpus.length) return "no GPU";
  const isAlike = gpus.every(({ name }) => name === gpus[0].name);
  const name = gpus.length === 1 ? gpus[0].name : `${gpus.length} × ${isAlike ? gpus[0].name : "GPU"}`;
  return [name, ...gpuWords(gpus)].join(" · ");
}

function traffic(nic) {
  const sent = known(nic.sent_bytes_per_s, (bytes) => `sent ${rate(bytes)}`);
  const received = known(nic.received_bytes_per_s, (bytes) => `received ${rate(bytes)}`);
  return [nic.name, ...sent, ...received].join(" · ");
}

function nicLine(nic) {
  return [traffic(nic), ...(nic.link ? [`link: ${nic.link}`] : [])].join(" · ");
}

function busiest(nics) {
  if (!nics.length) return "";
  const most = nics.reduce((one, other) => (carried(other) > carried(one) ? other : one));
  return traffic(most) + (nics.length > 1 ? `, the busiest of ${nics.length}` : "");
}

class Host {
  element;
  #head = {};
  #all = make("div", { class: "devices" });
  #host = null;

  constructor() {
    for (const part of ["name", "cpu", "gpus", "nics"]) this.#head[part] = make("span", { class: part });
    this.element = make("details", { class: "host" }, make("summary", {}, ...Object.values(this.#head)), this.#all);
    this.element.addEventListener("toggle", () => this.#unfold());
  }

  take(host, isOver) {
    this.#host = host;
    const { name, age_s, cpu, memory, gpus, nics } = host;
    const isOld = isKnown(age_s), isSilent = isOld && !isOver;
    const work = [...known(cpu, (share) => `${percent(share)} busy`), ...known(memory, (share) => `memory ${percent(share)}`)];
    this.element.classList.toggle("stale", isOld);
    say(this.#head.name, name);
    const when = isOld && isOver ? `${duration(age_s)} before the end: ` : "";
    say(this.#head.cpu, isSilent ? `no sample for ${duration(age_s)}` : when + work.join(" · "));
    say(this.#head.gpus, isSilent ? "" : gpuLine(gpus));
    say(this.#head.nics, isSilent ? "" : busiest(nics));
    this.#unfold();
  }

  #unfold() {
    if (!this.element.open || this.#host === null) return;
    const { gpus, nics } = this.#host;
    const lines = [...gpus.map((gpu, place) => `${place} ${gpuLine([gpu])}`), ...nics.map(nicLine)];
    while (this.#all.children.length > lines.length) this.#all.lastElementChild.remove();
    while (this.#all.children.length < lines.length) this.#all.append(make("p"));
    lines.forEach((text, place) => say(this.#all.children[place], text));
  }
}

// All hosts in a line, from the lowest to the highest.
function allWords(hosts, isOver) {
  if (!hosts.length) return "No host has been sampled yet.";
  const heard = hosts.filter(({ age_s }) => !isKnown(age_s));
  const missing = hosts.length - heard.length;
  const warning = isOver ? `${missing} not sampled any more` : `⚠ ${missing} without a recent sample`;
  const work = range(heard.map(({ cpu }) => cpu), hundredth, " % busy").map((text) => `processors ${text}`);
  const gpus = heard.flatMap((host) => host.gpus);
  return [
    `${hosts.length} ${hosts.length > 1 ? "hosts" : "host"}`, ...(missing ? [warning] : []),
    ...work, ...(gpus.length ? [gpuLine(gpus)] : []),
  ].join(" · ");
}

export class Hosts {
  element;
  #held = new Map();
  #when = make("b");
  #all = make("span");
  #lines = make("div", { class: "hosts" });

  constructor() {
    this.element = make("details", { class: "now" }, make("summary", {}, this.#when, " ", this.#all), this.#lines);
  }

  take(hosts, { isOver }) {
    say(this.#when, isOver ? "At the end" : "Now");
    // Few are seen at once; of many, who wants to see them opens them.
    if (!this.#held.size && hosts.length && hosts.length <= FEW) this.element.open = true;
    say(this.#all, allWords(hosts, isOver));
    const names = new Set(hosts.map(({ name }) => name));
    for (const [name, host] of this.#held) {
      if (names.has(name)) continue;
      host.element.remove();
      this.#held.delete(name);
    }
    for (const host of hosts) {
      if (!this.#held.has(host.name)) {
        this.#held.set(host.name, new Host());
        this.#lines.append(this.#held.get(host.name).element);
      }
      this.#held.get(host.name).take(host, isOver);
    }
  }
}
