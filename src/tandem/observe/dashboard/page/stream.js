// The connection to the server: server-sent events that come back by themselves, and rest while nobody looks.

const BACK_OFF_MS = [1000, 2000, 4000, 8000, 15000, 30000];
const HIDDEN_MS = 60_000;
const QUIET_MS = 30_000;
const PROBE_MS = 5_000;

export class Stream {
  #key;
  #address;
  #events;
  #onCondition;
  #source = null;
  #tries = 0;
  #retry = 0;
  #rest = 0;
  #pulse = 0;
  #heard = 0;
  #lostAt = null;
  #isPaused = false;
  #seen = () => this.#look();

  // `address` is asked for at every connection; `onCondition` hears {kind: live | lost | paused, since, why: token | run}.
  constructor({ key, address, events, onCondition }) {
    this.#key = key;
    this.#address = address;
    this.#events = events;
    this.#onCondition = onCondition;
  }

  open() {
    document.addEventListener("visibilitychange", this.#seen);
    this.#pulse = setInterval(() => this.#probe(), QUIET_MS / 3);
    this.#connect();
    this.#look();
  }

  close() {
    document.removeEventListener("visibilitychange", this.#seen);
    clearInterval(this.#pulse);
    clearTimeout(this.#rest);
    this.#lostAt = null; // an explanation on its way is no longer of interest
    this.#drop();
  }

  // Ask anew, as for other figures; while the server is away or nobody looks, the next connection does.
  reopen() {
    if (this.#source !== null) this.#connect();
  }

  #drop() {
    clearTimeout(this.#retry);
    this.#source?.close();
    this.#source = null;
  }

  #connect() {
    this.#drop();
    const source = new EventSource(this.#address());
    this.#source = source;
    this.#heard = Date.now();
    source.addEventListener("error", () => source === this.#source && this.#lose());
    for (const [kind, take] of Object.entries(this.#events))
      source.addEventListener(kind, (event) => {
        if (source !== this.#source) return;
        this.#hear();
        take(JSON.parse(event.data));
      });
  }

  #hear() {
    this.#heard = Date.now();
    this.#tries = 0;
    this.#lostAt = null;
    this.#onCondition({ kind: "live" });
  }

  #lose() {
    this.#drop();
    this.#lostAt ??= Date.now();
    const wait = BACK_OFF_MS[Math.min(this.#tries, BACK_OFF_MS.length - 1)];
    this.#tries += 1;
    // Not all pages at the same moment, when a server comes back.
    this.#retry = setTimeout(() => this.#connect(), wait * (0.8 + 0.4 * Math.random()));
    this.#onCondition({ kind: "lost", since: this.#lostAt, why: "" });
    this.#explain();
  }

  // An event source does not say why it was refused; a plain question is answered.
  async #explain() {
    try {
      const answer = await fetch("/api/runs", { signal: AbortSignal.timeout(PROBE_MS) });
      const why = answer.ok ? await this.#miss(answer) : "token";
      if (why && this.#lostAt !== null) this.#onCondition({ kind: "lost", since: this.#lostAt, why });
    } catch {
      // No answer is what was said already.
    }
  }

  async #miss(answer) {
    const { runs } = await answer.json();
    return runs.some(({ key }) => key === this.#key) ? "" : "run";
  }

  // A connection whose other end vanished stays silent without an error.
  async #probe() {
    if (this.#source === null || Date.now() - this.#heard < QUIET_MS) return;
    try {
      await fetch("/healthz", { signal: AbortSignal.timeout(PROBE_MS) });
      this.#heard = Date.now();
    } catch {
      if (this.#source !== null) this.#lose();
    }
  }

  #look() {
    clearTimeout(this.#rest);
    if (document.visibilityState === "hidden") {
      this.#rest = setTimeout(() => this.#pause(), HIDDEN_MS);
    } else if (this.#isPaused || this.#lostAt !== null) {
      this.#isPaused = false;
      this.#connect();
    }
  }

  #pause() {
    this.#drop();
    this.#isPaused = true;
    this.#onCondition({ kind: "paused" });
  }
}
