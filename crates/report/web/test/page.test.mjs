// The page in a real browser, opened from a file as a reader would.
//
// Needs Chromium (at /usr/bin/chromium or where $CHROMIUM says) and the example `sample_page`, which makes the page.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
// As `cargo test` builds it.
const samplePage = process.env.SAMPLE_PAGE
  ?? fileURLToPath(new URL("../../../../target/debug/examples/sample_page", import.meta.url));
const skip = existsSync(executablePath) ? false : `there is no Chromium at ${executablePath}; $CHROMIUM can name another`;
const quiet = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

describe("the report page", { skip }, () => {
  let browser, folder, url, data, page;
  const requests = [];
  const complaints = [];

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "suimon-page-"));
    const file = join(folder, "page.html");
    execFileSync(samplePage, [file], { stdio: ["ignore", "ignore", "inherit"] });
    url = pathToFileURL(file).href;
    const json = /<script type="application\/json" id="data">(.*?)<\/script>/s.exec(readFileSync(file, "utf8"))[1];
    data = JSON.parse(json);
    browser = await chromium.launch({ executablePath, headless: true, args: quiet });
    page = await open({ width: 1280, height: 900 }, "light");
  });

  after(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function open(viewport, colorScheme, address = url, more = {}) {
    const context = await browser.newContext({ viewport, colorScheme, ...more });
    const opened = await context.newPage();
    opened.on("request", (request) => requests.push(request.url() === address ? "the file" : request.url()));
    opened.on("console", (message) => {
      // Said because these tests read pixels back, which the page itself never does.
      if (!message.text().includes("willReadFrequently")) complaints.push(`${message.type()}: ${message.text()}`);
    });
    opened.on("pageerror", (error) => complaints.push(error.stack));
    await opened.goto(address);
    await opened.waitForSelector("footer");
    return opened;
  }

  /** The x range of every chart over time, in order. */
  const ranges = () => page.$$eval(".chart.time", (figures) =>
    figures.map(({ chart }) => [chart.scales.x.min, chart.scales.x.max]));

  /** How many pixels of each canvas are not empty, and whether it has a size. */
  const canvases = (opened) => opened.$$eval(".chart .plot canvas", (all) => all.map((canvas) => {
    const { data: pixels } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const box = canvas.getBoundingClientRect();
    const drawn = pixels.reduce((count, value, at) => count + (at % 4 === 3 && value > 0 ? 1 : 0), 0);
    return { drawn, width: box.width, height: box.height };
  }));

  /** Pixels of a colour that a chart shows. */
  const painted = (figure, colour) => figure.$eval("canvas", (canvas, hex) => {
    const wanted = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    const { data: pixels } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let at = 0; at < pixels.length; at += 4) {
      if (pixels[at + 3] === 255 && wanted.every((part, i) => Math.abs(pixels[at + i] - part) < 3)) count++;
    }
    return count;
  }, colour);

  const rgb = (hex) => `rgb(${[1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)).join(", ")})`;

  async function drag(figure, from, to) {
    await figure.scrollIntoViewIfNeeded();
    const box = await (await figure.$(".u-over")).boundingBox();
    const y = box.y + box.height / 2;
    await page.mouse.move(box.x + box.width * from, y);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * to, y, { steps: 8 });
    await page.mouse.up();
    await page.waitForTimeout(50);
  }

  test("every chart has a size and something drawn", async () => {
    const drawn = await canvases(page);
    assert.equal(drawn.length, data.panels.length + data.figures.length);
    assert.equal(data.panels.length, 4);
    for (const { drawn: pixels, width, height } of drawn) {
      assert.ok(width > 300 && height > 200, `${width} × ${height}`);
      assert.ok(pixels > 2000, `${pixels} pixels`);
    }
  });

  test("tables show the runs with their numbers and grades", async () => {
    const rows = await page.$$eval("#results-latency tbody tr", (all) =>
      all.map((row) => [...row.children].map((cell) => cell.textContent)));
    assert.deepEqual(rows[1], ["cubic", "D", "3.39", "97.5", "58.0", "87.0", "66", "99.0", "193", "215", "219"]);
    assert.deepEqual(rows.map(([name, grade]) => `${name} ${grade}`), [
      "reno D", "cubic D", "vegas A", "bbr B", "fs-at A", "fs-at:mode=fit A",
    ]);
    const costs = await page.$$eval("#results-cost tbody tr:nth-child(2) > *", (all) => all.map((cell) => cell.textContent));
    assert.deepEqual(costs, ["cubic", "373", "400", "41", "0", "41", "1", "0", "10", "–"]);
    const claims = await page.$$eval(".verdicts tbody td:last-child", (all) => all.map((cell) => cell.textContent));
    assert.deepEqual(claims, ["reproduced", "not reproduced", "not tested"]);
  });

  test("the page says what made it and how it grades", async () => {
    assert.equal(await page.textContent("h1"), data.header.title);
    assert.equal(await page.textContent("#command"), data.header.command);
    const facts = (await page.textContent("#facts")).replace(/\s+/g, " ");
    for (const fact of ["Scenariodownlink", "Seed7", "Duration60 s", "Version0.1.0"]) assert.ok(facts.includes(fact), facts);
    const grading = (await page.textContent("#grading")).replaceAll("\u00a0", " ");
    assert.equal(grading, data.grading);
    assert.match(grading, /A\+ < 5 ms, A < 30 ms, B < 60 ms, C < 200 ms, D < 400 ms, F beyond/);
    assert.equal((await page.textContent("#summary")).replaceAll("\u00a0", " "), data.summary);
  });

  test("legends and curves have the algorithms' colours", async () => {
    for (const [index, figure] of (await page.$$(".chart.time")).entries()) {
      const shown = data.panels[index].curves.filter((curve) => data.panels[index].quantities[curve.quantity].shown);
      const legend = await figure.$$eval(".u-series:not(:first-child)", (all) => all.map((entry) => ({
        name: entry.querySelector(".u-label").textContent,
        colour: getComputedStyle(entry.querySelector(".u-marker")).borderTopColor,
      })));
      assert.deepEqual(legend, shown.map((curve) => ({ name: curve.name, colour: rgb(curve.colour) })));
    }
    const window = (await page.$$(".chart.time"))[1];
    const scatter = (await page.$$(".chart.figure"))[0];
    const named = await scatter.$$eval(".legend .chip", (all) => all.map((chip) => [chip.textContent, chip.dataset.colour]));
    assert.deepEqual(named, data.runs.map((run) => [run.name, run.colour]));
    for (const { colour } of data.runs) {
      assert.ok(await painted(window, colour) > 50, `no curve in ${colour}`);
      assert.ok(await painted(scatter, colour) > 10, `no point in ${colour}`);
    }
  });

  test("a drag zooms every chart over time and a double click shows everything again", async () => {
    const whole = await ranges();
    const figures = await page.$$(".chart.time");
    await drag(figures[1], 0.25, 0.5);
    const zoomed = await ranges();
    for (const [low, high] of zoomed) {
      assert.ok(Math.abs(low - 15) < 1 && Math.abs(high - 30) < 1, `${low} to ${high}`);
      assert.deepEqual([low, high], zoomed[0]);
    }
    await (await figures[2].$(".u-over")).dblclick();
    await page.waitForTimeout(50);
    assert.deepEqual(await ranges(), whole);
    await drag(figures[0], 0.6, 0.7);
    await page.getByRole("button", { name: "Reset zoom" }).click();
    assert.deepEqual(await ranges(), whole);
  });

  test("a figure zooms in both directions and comes back", async () => {
    const [scatter] = await page.$$(".chart.figure");
    const range = () => scatter.evaluate(({ chart: { scales } }) => [scales.x.min, scales.x.max, scales.y.min, scales.y.max]);
    const whole = await range();
    await drag(scatter, 0.5, 0.95);
    const zoomed = await range();
    assert.ok(zoomed[0] > whole[0] && zoomed[1] < whole[1], `${zoomed}`);
    await (await scatter.$(".u-over")).dblclick();
    await page.waitForTimeout(50);
    assert.deepEqual(await range(), whole);
  });

  test("pointing at a point of a figure names its run", async () => {
    const [scatter] = await page.$$(".chart.figure");
    await scatter.scrollIntoViewIfNeeded();
    const at = await scatter.evaluate(({ chart }) => {
      const box = chart.over.getBoundingClientRect();
      const [[x], [y]] = chart.data[2];
      return { x: box.x + chart.valToPos(x, "x"), y: box.y + chart.valToPos(y, "y") };
    });
    await page.mouse.move(at.x + 3, at.y - 2);
    assert.equal(await scatter.$eval(".tip", (tip) => tip.innerText), "cubic\nGoodput: 3.39 Mbit/s\nMean backlog: 58.0 packets");
  });

  test("runs and quantities can be switched off and on", async () => {
    const count = (at) => page.$$eval(".chart.time", (all, index) => all[index].chart.series.length - 1, at);
    assert.equal(await count(0), 6);
    await page.click('#runs [data-run="1"]');
    assert.equal(await count(0), 5);
    assert.equal(await page.getAttribute('#runs [data-run="1"]', "aria-pressed"), "false");
    await page.click('#runs [data-run="1"]');
    assert.equal(await count(0), 6);
    const windows = (await page.$$(".chart.time"))[1];
    await windows.$$eval(".chip", ([, ssthresh]) => ssthresh.click());
    assert.equal(await count(1), 12, "cwnd and ssthresh share an axis");
    await windows.$$eval(".chip", ([, ssthresh]) => ssthresh.click());
    const backlog = (await page.$$(".chart.time"))[2];
    await backlog.$$eval(".chip", ([, bytes]) => bytes.click());
    assert.equal(await count(2), 6, "packets and bytes do not");
    assert.match(await backlog.$eval(".unit", (unit) => unit.textContent), /kB/);
    await backlog.$$eval(".chip", ([packets]) => packets.click());
  });

  test("runs of one colour differ by dash, where more than one is shown", async () => {
    const borders = () => page.$eval(".chart.time", (figure) => [...figure.querySelectorAll(".u-marker")]
      .slice(1).map((marker) => getComputedStyle(marker).borderTopStyle));
    assert.deepEqual((await borders()).slice(-2), ["solid", "dashed"]);
    await page.click('#runs [data-run="4"]');
    assert.deepEqual((await borders()).slice(-1), ["solid"]);
    await page.click('#runs [data-run="4"]');
  });

  test("with several scenarios a button shows the runs of one, over all of their time", async () => {
    const several = structuredClone(data);
    several.runs.slice(3).forEach((run) => (run.scenario = "uplink"));
    several.panels.forEach((panel) => panel.curves.filter((curve) => curve.run >= 3).forEach((curve) => {
      curve.t = curve.t.map((time) => time * 2);
    }));
    const html = readFileSync(fileURLToPath(url), "utf8");
    const json = JSON.stringify(several).replaceAll("<", "\\u003c");
    const file = join(folder, "several.html");
    writeFileSync(file, html.replace(/(id="data">).*?(<\/script>)/s, (all, before, after) => before + json + after));
    const opened = await open({ width: 1280, height: 900 }, "light", pathToFileURL(file).href);
    const state = () => opened.evaluate(() => ({
      shown: [...document.querySelectorAll("#runs .chip")].map((chip) => chip.ariaPressed === "true"),
      end: Math.round(document.querySelector(".chart.time").chart.scales.x.max),
    }));
    await opened.getByRole("button", { name: "downlink", exact: true }).click();
    assert.deepEqual(await state(), { shown: [true, true, true, false, false, false], end: 60 });
    await opened.getByRole("button", { name: "uplink", exact: true }).click();
    assert.deepEqual(await state(), { shown: [false, false, false, true, true, true], end: 120 });
  });

  test("names with markup stay text", async () => {
    assert.equal(await page.textContent("#notes li"), "A name such as <b>bold</b> or </script> is only ever text.");
  });

  test("it fits a narrow screen and a dark scheme", async () => {
    const narrow = await open({ width: 400, height: 800 }, "dark");
    assert.ok(await narrow.evaluate(() => document.documentElement.scrollWidth) <= 400);
    const ground = await narrow.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.equal(ground, "rgb(16, 21, 28)");
    for (const { drawn, width } of await canvases(narrow)) assert.ok(drawn > 1000 && width <= 400, `${drawn}, ${width}`);
  });

  test("each chart says in words what it shows", async () => {
    const told = await page.$$eval(".chart .plot", (all) => all.map((plot) => [plot.getAttribute("role"), plot.getAttribute("aria-label")]));
    assert.equal(told.length, data.panels.length + data.figures.length);
    for (const [role, label] of told) {
      assert.equal(role, "img");
      assert.match(label, /^Chart: .+\..+ from .+ to .+/);
    }
    assert.match(await page.getAttribute("#delays", "aria-label"), /cubic: .+, grade D/);
  });

  test("a chart is saved as picture, drawing and table", async () => {
    const [scatter] = await page.$$(".chart.figure");
    const saved = async (kind) => {
      const [download] = await Promise.all([page.waitForEvent("download"), (await scatter.$(`.save button:text-is("${kind}")`)).click()]);
      return [download.suggestedFilename(), readFileSync(await download.path())];
    };
    const [png, picture] = await saved("PNG");
    assert.match(png, /\.png$/);
    assert.equal(picture.subarray(1, 4).toString(), "PNG");
    const [, drawing] = await saved("SVG");
    assert.match(drawing.toString(), /^<svg .*cubic.*<\/svg>\n$/s);
    const [, table] = await saved("CSV");
    const lines = table.toString().trim().split("\n");
    assert.equal(lines[0], "series,Goodput (bps),Mean backlog (packets)");
    assert.equal(lines.length, 1 + data.figures[0].series.reduce((count, series) => count + series.points.length, 0));
  });

  const TEXTS = ".grade, .soft, h1, h2, h3, td, th, small, dt, dd, li, summary, button, figcaption, .lead, .chip, .axis, "
    + ".unit, .verdict, .u-label, .u-value, .topology text";

  /** The contrast of each text with its ground. */
  const contrasts = (opened) => opened.$$eval(TEXTS, (all) => {
    const parts = (colour) => colour.match(/[\d.]+/g).map(Number);
    const luminance = (colour) => parts(colour).slice(0, 3).map((part) => part / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
      .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
    const ground = (node) => {
      if (!node) return "rgb(255, 255, 255)";
      const { backgroundColor } = getComputedStyle(node);
      const [, , , alpha = 1] = parts(backgroundColor);
      return alpha === 1 && backgroundColor.startsWith("rgb") ? backgroundColor : ground(node.parentElement);
    };
    return all.map((node) => {
      const { color, fill } = getComputedStyle(node);
      const drawn = node.namespaceURI.endsWith("svg");
      // Numbers of links stand on discs.
      const behind = node.classList.contains("number") ? getComputedStyle(node.previousSibling).fill : ground(node);
      const [one, other] = [luminance(drawn ? fill : color), luminance(behind)];
      return [String(node.className.baseVal ?? node.className) || node.tagName, (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05)];
    });
  });

  /** Texts that reach beyond the screen, other than in what scrolls by itself. */
  const beyond = (opened) => opened.$$eval(TEXTS, (all) => all
    .filter((node) => !node.closest(".scroll, .toolbar .chips, pre, .uplot"))
    .filter((node) => node.getBoundingClientRect().right > innerWidth + 1)
    .map((node) => node.textContent));

  test("text stands out by 4.5 at least and fits, on screens of each width and on paper", async () => {
    for (const [width, scheme, media] of [
      [390, "light", "screen"], [800, "light", "screen"], [1400, "light", "screen"], [1280, "dark", "screen"], [720, "dark", "print"],
    ]) {
      const opened = await open({ width, height: 900 }, scheme);
      await opened.emulateMedia({ media, colorScheme: media === "print" ? "light" : scheme });
      await opened.waitForTimeout(200);
      const found = await contrasts(opened);
      assert.ok(found.length > 100);
      for (const [name, contrast] of found) assert.ok(contrast >= 4.5, `${width} ${scheme} ${media}: ${name}: ${contrast}`);
      assert.deepEqual(await beyond(opened), [], `${width} ${media}`);
      await opened.context().close();
    }
  });

  test("each sender has a mark of its own, which grey and colour-blind eyes tell apart", async () => {
    const senders = [...new Set(data.runs.map(({ colour }) => colour))];
    const marks = await page.$$eval(".swatch", (all) => all.map(({ style }) => [style.backgroundColor, style.clipPath]));
    const shapes = new Map(marks);
    for (const [colour, shape] of marks) assert.equal(shape, shapes.get(colour), "the same everywhere");
    assert.equal(new Set(senders.map((colour) => shapes.get(rgb(colour)))).size, senders.length);
    const first = (colour) => data.runs.findIndex((run) => run.colour === colour);
    const session = await page.context().newCDPSession(page);
    for (const type of ["achromatopsia", "deuteranopia", "none"]) {
      await session.send("Emulation.setEmulatedVisionDeficiency", { type });
      const pictures = [];
      for (const colour of senders) {
        const mark = page.locator(`.chart.figure .legend .chip[data-colour="${colour}"] canvas`).first();
        pictures.push((await mark.screenshot()).toString("base64"));
        const entry = page.locator(".chart.time").first().locator(".u-series").nth(1 + first(colour));
        pictures.push((await entry.locator(".u-marker").screenshot()).toString("base64"));
      }
      assert.equal(new Set(pictures).size, pictures.length, type);
    }
  });

  test("two fingers zoom, one moves what is zoomed, and two taps show everything again", async () => {
    const touched = await open({ width: 390, height: 800 }, "light", url, { hasTouch: true, isMobile: true });
    const session = await touched.context().newCDPSession(touched);
    const send = (type, ...points) => session.send("Input.dispatchTouchEvent", {
      type, touchPoints: points.map(([x, y], id) => ({ x, y, id })),
    });
    const range = (selector) => touched.$eval(selector, ({ chart: { scales } }) => [scales.x.min, scales.x.max]);
    for (const selector of [".chart.time", ".chart.figure"]) {
      await (await touched.$(selector)).scrollIntoViewIfNeeded();
      const box = await (await touched.$(`${selector} .u-over`)).boundingBox();
      const at = (share) => [box.x + box.width * share, box.y + box.height / 2];
      const whole = await range(selector);
      await send("touchStart", at(0.4), at(0.6));
      for (let step = 1; step <= 5; step++) await send("touchMove", at(0.4 - 0.04 * step), at(0.6 + 0.04 * step));
      await send("touchEnd");
      const [low, high] = await range(selector);
      const part = (high - low) / (whole[1] - whole[0]);
      assert.ok(part > 0.2 && part < 0.5, `${selector}: ${part}`);
      await send("touchStart", at(0.6));
      for (let step = 1; step <= 5; step++) await send("touchMove", at(0.6 - 0.04 * step));
      await send("touchEnd");
      const moved = await range(selector);
      assert.ok(moved[0] > low && Math.abs(moved[1] - moved[0] - (high - low)) < 0.01 * (high - low), `${moved}`);
      for (let tap = 0; tap < 2; tap++) {
        await send("touchStart", at(0.5));
        await send("touchEnd");
      }
      await touched.waitForTimeout(50);
      assert.deepEqual(await range(selector), whole, selector);
    }
    await touched.context().close();
  });

  test("the network is drawn, with its links in words", async () => {
    assert.equal(await page.$$eval("#topology rect", (all) => all.length), data.topology.nodes.length);
    const links = await page.$$eval("#topology li", (all) => all.map((link) => link.textContent.replaceAll("\u00a0", " ")));
    assert.equal(links[1], "base station – phone: → 3.6 Mbit/s, 10 ms, 96 kB, droptail; ← 384 kbit/s, 10 ms");
    const narrow = await open({ width: 390, height: 800 }, "light");
    const box = await narrow.$eval("#topology svg", (drawing) => [drawing.getBoundingClientRect().right, drawing.getBoundingClientRect().height]);
    assert.ok(box[0] <= 390 && box[1] > 30, `${box}`);
    await narrow.context().close();
  });

  test("a band shows the interval of each mean, and files have its ends", async () => {
    const figures = await page.$$(".chart.figure");
    const bands = figures[data.figures.findIndex(({ title }) => title.startsWith("Mean backlog"))];
    const [download] = await Promise.all([page.waitForEvent("download"), (await bands.$('.save button:text-is("CSV")')).click()]);
    const [head, ...rows] = readFileSync(await download.path(), "utf8").trim().split("\n");
    assert.equal(head, "series,Link rate (bps),Mean backlog (packets),low,high");
    assert.ok(rows.some((row) => /^reno,64000,(?:[\d.]+,){2}[\d.]+$/.test(row)), rows.join("\n"));
    const [highest, scale] = await bands.evaluate(({ chart }) => [Math.max(...chart.data[2][1]), chart.scales.y.max]);
    assert.ok(scale >= 1.2 * highest, "the band is within the chart");
  });

  test("it fits 390, 800 and 1400 pixels and paper, where bars and grades are printed too", async () => {
    for (const width of [390, 800, 1400]) {
      const opened = await open({ width, height: 900 }, "light");
      assert.ok(await opened.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width}`);
      await opened.context().close();
    }
    const opened = await open({ width: 720, height: 1000 }, "light");
    await opened.emulateMedia({ media: "print" });
    await opened.evaluate(() => dispatchEvent(new Event("beforeprint")));
    const printed = await opened.evaluate(() => ({
      grade: getComputedStyle(document.querySelector(".grade")).printColorAdjust,
      bar: getComputedStyle(document.querySelector(".delays i")).printColorAdjust,
      toolbar: getComputedStyle(document.querySelector(".toolbar")).display,
      widest: Math.max(...[...document.querySelectorAll("canvas")].map((canvas) => canvas.getBoundingClientRect().right)),
    }));
    assert.deepEqual([printed.grade, printed.bar, printed.toolbar], ["exact", "exact", "none"]);
    assert.ok(printed.widest <= 720, `${printed.widest}`);
    assert.ok((await opened.pdf({ format: "A4" })).length > 10_000);
    await opened.context().close();
  });

  test("nothing but the file was asked for and nothing went wrong", () => {
    assert.deepEqual([...new Set(requests)], ["the file"]);
    assert.deepEqual(complaints, []);
  });
});
