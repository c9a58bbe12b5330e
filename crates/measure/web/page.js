// Measures the line to the server that this page came from, draws it meanwhile, and shows the result.

const find = (name) => document.getElementById(name);
const options = new URLSearchParams(location.search);
const number = (name, usual, least, most) => {
  const given = Number(options.get(name) ?? usual);
  return Number.isFinite(given) ? Math.min(Math.max(given, least), most) : usual;
};

/** Times in milliseconds, as those of the command: idle, of a load, to drain at most, and of the rest after it. */
const IDLE = 3_000;
const LOAD = 1_000 * number("seconds", 10, 1, 20);
const DRAIN = 4_000;
const REST = 700;
/** The most that a load waits for its first byte, which on a busy host takes seconds; why it takes so long is not known. */
const BEGIN = 15_000;
const TICK = 100;
const FLOWS = number("flows", 4, 1, 32);
/** Round-trip times are those of an idle line within so many microseconds of it, or a quarter more. */
const NEAR_IDLE = 2_000;
/** The time over which rates are drawn, in microseconds. */
const WINDOW = 300_000;

const COLOURS = { idle: "--idle", download: "--download", upload: "--upload" };

const pause = (time) => new Promise((done) => setTimeout(done, time));
const socketUrl = (path) => `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${path}`;
const significant = (value) => (value >= 100 ? value.toFixed(0) : value.toPrecision(3));

/** A measurement under way. */
class Run {
  constructor(show) {
    this.origin = performance.timeOrigin + performance.now();
    this.probes = [];
    this.arrived = [];
    this.phases = [];
    this.isOver = false;
    this.show = show;
    this.worker = new Worker("/probes.js");
  }

  now() {
    return Math.round((performance.timeOrigin + performance.now() - this.origin) * 1000);
  }

  /** Opens the session; ends in the server's refusal where there is none. */
  open() {
    return new Promise((done, fail) => {
      this.worker.onerror = () => fail(new Error("This browser did not start the measurement."));
      this.worker.onmessage = ({ data }) => {
        if (data.probes) this.take(data.probes);
        else if (data.open) done(data.open);
        else if (data.refused) fail(new Error(`${data.refused}.`));
        else if (data.closed) {
          this.isClosed = true;
          fail(new Error("The server does not answer."));
        }
      };
      const urls = { session: socketUrl("/session"), probes: socketUrl("/probes") };
      this.worker.postMessage({ urls, origin: this.origin });
    });
  }

  take(fresh) {
    for (const { number, sent, server, back, arrived } of fresh) {
      if (sent !== undefined) this.probes[number] = { sent };
      else if (this.probes[number] && this.probes[number].back === undefined) {
        Object.assign(this.probes[number], { server, back });
        // An answer that was sent again is older than those before it.
        this.arrived.push([back, Math.max(arrived, this.bytes)]);
      }
    }
  }

  check() {
    if (this.isClosed) throw new Error("The connection to the server broke.");
  }

  /** The payload that has arrived of both loads, in bytes. */
  get bytes() {
    return this.arrived.length ? this.arrived.at(-1)[1] : 0;
  }

  roundTrips(since) {
    return this.probes.filter(({ back }) => back !== undefined && back >= since).map(({ sent, back }) => back - sent);
  }

  /** A phase of a kind, for so long from when it has begun, or until it is told to end. */
  async phase(kind, time, isDone = () => false, hasBegun = () => true) {
    const phase = { kind, from: this.now(), to: Infinity };
    this.phases.push(phase);
    const latest = performance.now() + time + BEGIN;
    let until = performance.now() + time;
    while (performance.now() < until && !this.isOver && !isDone()) {
      if (!hasBegun()) until = Math.min(performance.now() + time, latest);
      await pause(Math.min(TICK, Math.max(0, until - performance.now())));
      this.check();
      this.show(this);
    }
    phase.to = this.now();
    return { from_us: phase.from, to_us: phase.to };
  }

  async load(direction, cookie, bytes) {
    const worker = new Worker("/load.js");
    const urls = Array.from({ length: FLOWS }, (_, flow) => (
      socketUrl(`/load?cookie=${cookie}&direction=${direction}&flow=${flow}`)));
    worker.postMessage({ urls, isUpload: direction === "upload" });
    const before = this.bytes;
    const span = await this.phase(direction, LOAD, () => this.bytes - before >= bytes, () => this.bytes > before);
    this.worker.postMessage({ end: direction });
    worker.terminate();
    return span;
  }

  /** Time without load after a load, from when nothing waits any more. */
  async drain() {
    const idle = Math.min(...this.roundTrips(0));
    const near = Math.max(idle + NEAR_IDLE, idle * 1.25);
    const until = performance.now() + DRAIN;
    const phase = { kind: "idle", from: this.now(), to: Infinity };
    this.phases.push(phase);
    for (;;) {
      const since = this.now();
      await pause(idle / 1000 + TICK);
      this.check();
      this.show(this);
      const seen = this.roundTrips(since);
      if ((seen.length && seen.every((time) => time <= near)) || performance.now() >= until || this.isOver) break;
    }
    phase.to = this.now();
    return this.phase("idle", REST + idle / 1000);
  }

  async measure(megabytes) {
    const { cookie, most_bytes: most } = await this.open();
    const bytes = Math.min(megabytes * 500_000, most);
    const seen = { idle: [await this.phase("idle", IDLE)] };
    if (!this.roundTrips(0).length) {
      throw new Error(this.isOver ? "The measurement was stopped before its first round trip." : "No probe came back.");
    }
    for (const direction of ["download", "upload"]) {
      if (this.isOver) break;
      seen[direction] = await this.load(direction, cookie, bytes);
      seen.idle.push(await this.drain());
    }
    const probes = this.probes.map(({ sent, server, back }) => (
      [sent, back === undefined ? null : [Math.round(server), back]]));
    const answer = await fetch(`/results?cookie=${cookie}`, { method: "POST", body: JSON.stringify({ probes, ...seen }) });
    if (!answer.ok) throw new Error(`The server made nothing of it: ${await answer.text()}`);
    return (await answer.json()).name;
  }

  close() {
    this.worker.terminate();
  }
}

// ---- Drawing

function frame(canvas, most, to) {
  const ratio = devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.fillStyle = getComputedStyle(canvas).getPropertyValue("--soft");
  pen.font = "12px system-ui, sans-serif";
  pen.fillText(significant(most), 2, 12);
  return { pen, x: (at) => (at / to) * (width - 4) + 2, y: (value) => height - 3 - (value / most) * (height - 20) };
}

const colour = (kind) => getComputedStyle(document.documentElement).getPropertyValue(COLOURS[kind]);

/** The rate over time of what arrived: in each phase of its own, so that one load does not begin with the end of another. */
function rates(run) {
  const points = [];
  let from = 0;
  run.arrived.forEach(([at, bytes], index) => {
    const phase = run.phases.find(({ from: begin, to }) => begin <= at && at < to);
    while (run.arrived[from][0] < Math.max(at - WINDOW, phase?.from ?? 0) && from < index) from += 1;
    const [before, start] = run.arrived[from];
    if (phase && phase.kind !== "idle" && at > before) points.push([at, ((bytes - start) * 8) / (at - before), phase.kind]);
  });
  return points;
}

function draw(run) {
  const to = Math.max(run.now(), 1e6 * (IDLE + 2 * LOAD + 3 * REST) / 1e3);
  const kindAt = (time) => run.phases.find(({ from, to: end }) => from <= time && time < end)?.kind ?? "idle";
  const answered = run.probes.filter(({ back }) => back !== undefined);
  const trips = answered.map(({ sent, back }) => [sent, (back - sent) / 1e3, kindAt(sent)]);
  const speeds = rates(run);
  const most = (points) => Math.max(1e-3, ...points.map(([, value]) => value)) * 1.05;
  const dots = frame(find("rtt"), most(trips), to);
  for (const [at, value, kind] of trips) {
    dots.pen.fillStyle = colour(kind);
    dots.pen.fillRect(dots.x(at) - 1, dots.y(value) - 1, 2.2, 2.2);
  }
  const lines = frame(find("rate"), most(speeds), to);
  lines.pen.lineWidth = 2;
  for (const kind of ["download", "upload"]) {
    lines.pen.strokeStyle = colour(kind);
    lines.pen.beginPath();
    for (const [at, value] of speeds.filter((point) => point[2] === kind)) lines.pen.lineTo(lines.x(at), lines.y(value));
    lines.pen.stroke();
  }
  find("rtt-now").textContent = trips.length ? significant(trips.at(-1)[1]) : "-";
  const isLoaded = kindAt(run.now()) !== "idle";
  find("rate-now").textContent = isLoaded && speeds.length ? significant(speeds.at(-1)[1]) : "-";
  find("progress").value = Math.min(1, run.now() / to);
  const kind = kindAt(run.now());
  find("status").textContent = kind === "idle" ? "The line is idle." : `The line is loaded by ${kind === "upload" ? "an" : "a"} ${kind}.`;
}

// ---- The result

async function showResult(name) {
  const base = `/results/${name}/`;
  const answer = await fetch(`${base}line.json`);
  if (!answer.ok) throw new Error(`There is no such result: ${await answer.text()}`);
  const line = await answer.json();
  find("server").textContent = line.to;
  find("grade").textContent = line.grade ?? "-";
  find("idle").textContent = `${significant(line.idle.rtt_ms)} ms while idle`;
  find("meaning").textContent = line.meaning;
  const body = find("table").tBodies[0];
  body.replaceChildren(...line.rows.map((row) => {
    const cells = row.map((text, index) => {
      const cell = document.createElement(index ? "td" : "th");
      if (!index) cell.scope = "row";
      cell.textContent = text;
      return cell;
    });
    const line = document.createElement("tr");
    line.append(...cells);
    return line;
  }));
  for (const [id, file] of [["picture", "line.svg"], ["file", "line.json"], ["csv", "line.csv"], ["toml", "line.toml"], ["link", ""]]) {
    find(id).href = base + file;
  }
  find("saved").hidden = !(line.download && line.upload);
  find("result").hidden = false;
  return base;
}

function say(text, isWrong = false) {
  find("status").textContent = text;
  find("status").classList.toggle("wrong", isWrong);
}

async function measure(event) {
  event.preventDefault();
  const run = new Run(draw);
  find("start").hidden = true;
  find("result").hidden = true;
  for (const id of ["stop", "progress", "live"]) find(id).hidden = false;
  find("stop").onclick = () => { run.isOver = true; };
  say("The session is opened.");
  try {
    const base = await showResult(await run.measure(Number(find("megabytes").value) || 1_000));
    history.replaceState(null, "", base);
    say("Done.");
  } catch (error) {
    say(error.message, true);
  }
  run.close();
  find("start").hidden = false;
  find("start").textContent = "Measure again";
  for (const id of ["stop", "progress"]) find(id).hidden = true;
}

find("server").textContent = location.host;
find("megabytes").value = number("megabytes", 1_000, 1, 8_000);
find("form").addEventListener("submit", measure);
const kept = location.pathname.match(/^\/results\/([0-9a-f]+)/);
if (kept) {
  showResult(kept[1]).then((base) => {
    find("image").src = `${base}line.svg`;
    find("image").hidden = false;
  }, (error) => say(error.message, true));
}
