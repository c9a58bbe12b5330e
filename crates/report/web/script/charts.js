// Charts: what both kinds share

const charts = new Set();
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

function axis(options) {
  return {
    stroke: () => theme("soft"),
    font: FONT,
    grid: { stroke: () => theme("grid"), width: 1 },
    ticks: { stroke: () => theme("grid"), width: 1, size: 4 },
    ...options,
  };
}

/** Wide enough for the longest label. */
function axisSize(chart, values) {
  const longest = Math.max(0, ...(values ?? []).map((value) => value.length));
  return Math.max(34, 14 + longest * 7);
}

const fromZero = (chart, low, high) =>
  (low === null || high === null ? [0, 1] : [Math.min(0, low * 1.08), high > 0 ? high * 1.08 : 1]);

function keepSize(chart, holder, height) {
  const observer = new ResizeObserver(() => {
    if (holder.clientWidth && holder.clientWidth !== chart.width) {
      chart.setSize({ width: holder.clientWidth, height });
    }
  });
  observer.observe(holder);
  charts.add(chart);
  return () => {
    observer.disconnect();
    charts.delete(chart);
    chart.destroy();
  };
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const chart of charts) chart.redraw(false, true);
});
