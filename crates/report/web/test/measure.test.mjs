// The page of `suimon measure --serve` in a real browser, over loopback. How exact it is over a line is for bench/browser.py to say.
//
// Needs Chromium (at /usr/bin/chromium or where $CHROMIUM says) and the command (where $SUIMON says).

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { runInNewContext } from "node:vm";
import { chromium } from "playwright-core";

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const suimon = process.env.SUIMON ?? fileURLToPath(new URL("../../../../target/debug/suimon", import.meta.url));
const skip = existsSync(executablePath) ? false : `there is no Chromium at ${executablePath}; $CHROMIUM can name another`;

test("a WebSocket that is stuck holds back none of the others", () => {
  const sockets = [];
  class WebSocket {
    static OPEN = 1;
    readyState = 1;
    bufferedAmount = 0;
    sent = [];
    constructor() { sockets.push(this); }
    send(question) { this.sent.push(new DataView(question).getUint32(0, true)); }
  }
  const timers = [];
  const world = { WebSocket, performance, postMessage() {}, setInterval() {}, setTimeout: (tick) => timers.push(tick) };
  runInNewContext(readFileSync(new URL("../../../measure/web/probes.js", import.meta.url), "utf8"), world);
  world.onmessage({ data: { origin: 0, urls: {} } });
  sockets[0].onmessage({ data: JSON.stringify({ open: { cookie: "" } }) });
  sockets[3].bufferedAmount = 512;
  for (const socket of sockets.slice(1)) socket.onopen();
  for (let tick = 1; tick < 16; tick += 1) timers.shift()();
  // The server counts on a probe's number to tell its WebSocket.
  assert.deepEqual(sockets.map(({ sent }) => sent), [0, 1, 2, 3, 4, 5, 6, 7].map((nth) => (nth === 3 ? [] : [nth, nth + 8])));
});

describe("the page of a measuring server", { skip }, () => {
  let browser, server, host;
  const complaints = [];

  before(async () => {
    server = spawn(suimon, ["measure", "--serve", "--listen", "127.0.0.1:0", "--max-a-minute", "4"], { stdio: ["ignore", "ignore", "pipe"] });
    const port = await new Promise((done, fail) => {
      let said = "";
      server.stderr.on("data", (text) => {
        said += text;
        const found = /connect to 127\.0\.0\.1:(\d+)/.exec(said);
        if (found) done(found[1]);
      });
      server.on("exit", () => fail(new Error(said)));
    });
    host = `127.0.0.1:${port}`;
    browser = await chromium.launch({ executablePath, headless: true, args: ["--no-sandbox", "--disable-gpu"] });
  });

  after(async () => {
    await browser?.close();
    server?.kill();
  });

  async function open(width, path) {
    const page = await browser.newPage({ viewport: { width, height: 900 } });
    page.on("console", (message) => complaints.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => complaints.push(error.stack));
    page.on("request", (request) => {
      const url = new URL(request.url());
      if (url.protocol !== "data:" && url.host !== host) complaints.push(`asked ${url}`);
    });
    await page.goto(`http://${host}${path}`);
    return page;
  }

  const isTooWide = (page) => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);

  test("a line is measured at 390 and 1400 pixels, and its result has an address, a picture and files", { timeout: 120_000 }, async () => {
    for (const width of [390, 1400]) {
      const page = await open(width, "/?seconds=1&megabytes=20&flows=2");
      await page.click("#start");
      await page.waitForSelector("#stop:not([hidden])");
      assert.ok(!(await isTooWide(page)), `${width}`);
      await page.waitForSelector("#result:not([hidden])", { timeout: 50_000 });
      assert.match(page.url(), /\/results\/[0-9a-f]{20}\/$/);
      assert.ok(!(await isTooWide(page)), `${width}`);
      const line = await page.evaluate(async () => (await fetch(document.querySelector("#file").href)).json());
      assert.equal(line.to, host);
      for (const direction of ["download", "upload"]) {
        assert.ok(line[direction]?.capacity_mbps > 1, JSON.stringify(line));
      }
      assert.equal(await page.textContent("#grade"), line.grade);
      const drawn = await page.$eval("#rtt", (canvas) => canvas.getContext("2d")
        .getImageData(0, canvas.height / 2, canvas.width, canvas.height / 2).data.some((value) => value > 0));
      assert.ok(drawn, "round trips are drawn");
      // Whoever gets the address sees the same.
      const again = await open(width, new URL(page.url()).pathname);
      await again.waitForSelector("#result:not([hidden])");
      assert.equal(await again.textContent("#table"), await page.textContent("#table"));
      assert.ok(await again.$eval("#image", async (image) => { await image.decode(); return image.naturalWidth === 900; }));
      assert.ok(!(await isTooWide(again)), `${width}`);
    }
  });

  test("a measurement that is stopped shows what is known, and one too many is refused in words", { timeout: 60_000 }, async () => {
    const page = await open(800, "/?seconds=1");
    // In one call, since a busy host could delay the second click.
    const beginAndStop = async () => {
      await page.evaluate(() => ["start", "stop"].forEach((id) => document.getElementById(id).click()));
      await page.waitForSelector("#start:not([hidden])");
    };
    await beginAndStop();
    assert.equal(await page.textContent("#status"), "The measurement was stopped before its first round trip.");
    await page.click("#start");
    // Within the page, so that a busy host does not stop it late, in a load.
    await page.waitForFunction(() => {
      const isKnown = /\d/.test(document.getElementById("rtt-now").textContent);
      if (isKnown) document.getElementById("stop").click();
      return isKnown;
    });
    await page.waitForSelector("#result:not([hidden])");
    assert.match(await page.textContent("#meaning"), /measured idle only/);
    // Four in a minute, whatever the test before has asked for.
    const isRefused = async () => /asked the server too often/.test(await page.textContent("#status"));
    for (let more = 0; more < 4 && !(await isRefused()); more += 1) await beginAndStop();
    assert.match(await page.textContent("#status"), /asked the server too often/);
  });

  test("nothing was asked for elsewhere and nothing went wrong", () => assert.deepEqual(complaints, []));
});
