// Measures by the page in Chromium, and prints the result as JSON: node browser.mjs URL WIDTH [SCREENSHOT]
import { createRequire } from "node:module";
import { writeFileSync } from "node:fs";

const require = createRequire(new URL("../crates/report/web/package.json", import.meta.url));
const { chromium } = require("playwright-core");

const [url, width, screenshot] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});
try {
  const page = await browser.newPage({ viewport: { width: Number(width), height: 900 } });
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (message) => { if (message.type() === "error") wrong.push(message.text()); });
  page.on("request", (request) => {
    if (new URL(request.url()).host !== new URL(url).host && !request.url().startsWith("data:")) wrong.push(`asked ${request.url()}`);
  });
  await page.goto(url);
  await page.click("#start");
  await page.waitForFunction(() => document.querySelector("#status.wrong") || !document.querySelector("#result").hidden, null, { timeout: 120_000 });
  const status = await page.textContent("#status");
  if (await page.isHidden("#result")) throw new Error(`${status} ${wrong.join("; ")}`);
  const base = page.url();
  const line = await page.evaluate(async (base) => (await fetch(`${base}line.json`)).json(), base);
  const isWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  if (isWide) wrong.push(`the page is wider than ${width} pixels`);
  if (screenshot) await page.screenshot({ path: `${screenshot}.png`, fullPage: true });
  for (const kind of screenshot ? ["svg", "csv"] : []) {
    writeFileSync(`${screenshot}.${kind}`, await page.evaluate(async (file) => (await fetch(file)).text(), `${base}line.${kind}`));
  }
  console.log(JSON.stringify({ line, wrong }));
} finally {
  await browser.close();
}
