// Queueing delay as bars

function delays() {
  if (!data.delays.length) return null;
  const steps = data.thresholds.map(([, below]) => below);
  const high = Math.max(1000, ...data.delays.map((bar) => bar.p99_ms)) * 1.15;
  const low = 1;
  // Perception of delay goes by ratio, and the grades do too.
  const place = (ms) => (100 * Math.log(Math.max(ms, low) / low)) / Math.log(high / low);
  const percent = (ms) => `${place(ms)}%`;
  const rows = data.delays.flatMap((bar) => [
    element("span", { class: "who" }, swatch(bar.colour), bar.name),
    element("div", {
      class: "track",
      title: `${bar.link}: p50 ${quantity(bar.p50_ms, "ms")}, p95 ${quantity(bar.p95_ms, "ms")}, `
        + `p99 ${quantity(bar.p99_ms, "ms")}, max ${quantity(bar.max_ms, "ms")}`,
    },
      ...steps.map((ms) => element("i", { class: "step", style: { left: percent(ms) } })),
      element("i", {
        class: "wide",
        style: { left: 0, width: percent(bar.p99_ms), backgroundColor: bar.colour },
      }),
      element("i", {
        class: "thick",
        style: {
          left: percent(bar.p50_ms),
          width: `${Math.max(0.4, place(bar.p95_ms) - place(bar.p50_ms))}%`,
          backgroundColor: bar.colour,
        },
      }),
      element("i", { class: "mark", style: { left: percent(bar.p95_ms) } })),
    element("span", { class: "value" }, quantity(bar.p95_ms, "ms")),
    gradeBadge(bar.grade),
  ]);
  const labels = [low, ...steps, 1_000, 10_000, 100_000].filter((ms) => ms <= high);
  const scale = element("div", { class: "scale" }, ...labels.map((ms) =>
    element("span", { style: { left: percent(ms) } }, ms >= 1_000 ? `${ms / 1_000} s` : String(ms))));
  const told = data.delays.map((bar) => `${bar.name}: ${quantity(bar.p95_ms, "ms")}, grade ${bar.grade}`);
  return element("figure", { class: "card chart", id: "delays", "aria-label": `Queueing delay, 95th percentile. ${told.join("; ")}.` },
    element("header", {}, element("h3", {}, "Queueing delay"),
      element("span", { class: "unit" }, "95th percentile, ms, logarithmic")),
    element("div", { class: "delays" }, ...rows, element("span"), scale, element("span"), element("span")),
    element("figcaption", {},
      "The thick bar runs from the median to the 95th percentile, which is marked, stated and graded; "
      + "the thin line ends at the 99th. Vertical lines stand where one grade ends and the next begins."));
}
