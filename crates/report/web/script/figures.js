// Figures: anything against anything

function legendMark(series, mark) {
  const canvas = element("canvas", { width: 44, height: 24 });
  const context = canvas.getContext("2d");
  context.strokeStyle = context.fillStyle = series.colour;
  if (series.style !== "points") {
    context.lineWidth = 4;
    context.setLineDash(series.style === "dashed-line" ? [9, 6] : mark.dash.map((length) => 2 * length));
    context.beginPath();
    context.moveTo(0, 12);
    context.lineTo(44, 12);
    context.stroke();
  }
  if (series.style.includes("points")) drawMark(context, mark, 22, 12, 8);
  return canvas;
}

function drawSeries(series, mark) {
  return (chart, index) => {
    const [xs, ys] = chart.data[index];
    const { ctx, bbox } = chart;
    const pixels = devicePixelRatio;
    const at = xs.map((x, i) => [chart.valToPos(x, "x", true), chart.valToPos(ys[i], "y", true)]);
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.strokeStyle = ctx.fillStyle = series.colour;
    const band = series.points.filter((point) => point.length > 3 && point[1] !== null);
    if (band.length > 1) {
      const edge = (at) => ([x, , , ...ends]) => [chart.valToPos(x, "x", true), chart.valToPos(ends[at], "y", true)];
      ctx.globalAlpha = 0.18;
      ctx.beginPath();
      for (const [x, y] of [...band.map(edge(0)), ...band.map(edge(1)).reverse()]) ctx.lineTo(x, y);
      ctx.fill();
      ctx.globalAlpha = 1;
    }
    if (series.style !== "points") {
      ctx.lineWidth = 1.6 * pixels;
      ctx.setLineDash((series.style === "dashed-line" ? [6, 4] : mark.dash).map((length) => length * pixels));
      ctx.beginPath();
      at.forEach(([x, y]) => (Number.isFinite(y) ? ctx.lineTo(x, y) : null));
      ctx.stroke();
    }
    if (series.style.includes("points")) {
      ctx.setLineDash([]);
      ctx.lineWidth = 1.5 * pixels;
      ctx.strokeStyle = theme("card");
      for (const [x, y] of at) {
        if (!mark.hollow) ctx.stroke(markerPath(mark.kind, x, y, 4.6 * pixels));
        drawMark(ctx, mark, x, y, 4.6 * pixels);
      }
    }
    ctx.restore();
    return null;
  };
}

/** `values` are all that is drawn, `ends` the ends of bands: these are seen too where all is seen. */
function figureRange(scale, values = [], ends = []) {
  if (scale !== "logarithmic") {
    const highest = Math.max(...values);
    return (chart, low, high) => fromZero(chart, low, high === highest ? Math.max(high, ...ends) : high);
  }
  return (chart, low, high) => (low > 0 ? [low / 1.25, high * 1.25] : [1, 10]);
}

function figureAxis(side, largest) {
  const logarithmic = side.scale === "logarithmic";
  return axis(logarithmic
    // The library counts its lines from the edge of the chart and blanks labels that are not powers of ten.
    ? { splits: logSplits, values: logValues(side.unit), filter: (chart, splits) => splits }
    : { values: axisValues(side.unit, largest) });
}

/** The heading of an axis: linear axes carry one unit, logarithmic labels each their own. */
const largestOf = (values) => Math.max(0, ...values.map(Math.abs));

function axisTitle(side, values) {
  if (side.scale === "logarithmic") return side.label;
  const unit = prefix(side.unit, largestOf(values))[1];
  return unit ? `${side.label} (${unit})` : side.label;
}

/** The name of an axis with its base unit, as files have it. */
const axisName = (side) => (side.unit ? `${side.label} (${side.unit})` : side.label);

function figureChart(spec) {
  const holder = element("div", { class: "plot" });
  const known = (point) => point[0] !== null && point[1] !== null;
  const points = spec.series.map((series) => series.points.filter(known));
  const all = points.flat();
  const curves = spec.series.map(({ name, colour, style }, index) =>
    ({ name, colour, line: style !== "points", points: points[index] }));
  describe(holder, `${spec.title}, ${spec.y.label} against ${spec.x.label}`, curves, spec.y.unit);
  // Each sender has its shape; what one colour has several of, such as an algorithm over several links, differs by fill, and
  // lines without marks by dash.
  const before = spec.series.map(({ colour }, index) =>
    spec.series.slice(0, index).filter((other) => other.colour === colour).length);
  const marks = spec.series.map(({ colour }, index) => ({
    kind: markerOf(colour),
    ...FILLS[before[index] % FILLS.length],
    dash: spec.series[index].style === "line" ? DASHES[before[index] % DASHES.length] : [],
  }));
  const legend = spec.series.map((series, index) => {
    const chip = element("button", {
      type: "button",
      class: "chip",
      "aria-pressed": "true",
      "data-colour": series.colour,
      onclick: () => {
        const show = !figure.chart.series[index + 1].show;
        figure.chart.setSeries(index + 1, { show });
        chip.setAttribute("aria-pressed", String(show));
      },
    }, legendMark(series, marks[index]), series.name);
    return chip;
  });
  const figure = element("figure", { class: "card chart figure" },
    element("header", {}, element("h3", {}, spec.title),
      element("span", { class: "unit" }, axisTitle(spec.y, all.map(([, y]) => y))),
      saving(spec.title, () => figure.chart, () => ({ curves, x: axisName(spec.x), y: axisName(spec.y) }))),
    holder,
    element("p", { class: "axis" }, axisTitle(spec.x, all.map(([x]) => x))),
    element("div", { class: "legend" }, ...legend),
    spec.caption ? element("figcaption", {}, spec.caption) : null);

  const tip = element("div", { class: "tip", hidden: "" });
  function point(chart) {
    const { left, top } = chart.cursor;
    let best = { distance: 28 };
    points.forEach((members, index) => {
      if (!chart.series[index + 1].show) return;
      for (const member of members) {
        const [x, y] = [chart.valToPos(member[0], "x"), chart.valToPos(member[1], "y")];
        const distance = Math.hypot(x - left, y - top);
        if (distance < best.distance) best = { distance, x, y, member, index };
      }
    });
    tip.hidden = !best.member || left < 0;
    if (tip.hidden) return;
    const [x, y, label] = best.member;
    const line = (side, value) => element("div", {}, `${side.label}: ${value}`);
    const interval = best.member.length > 3
      ? ` (${quantity(best.member[3], spec.y.unit)} to ${quantity(best.member[4], spec.y.unit)})` : "";
    tip.replaceChildren(element("strong", {}, label ?? spec.series[best.index].name),
      line(spec.x, quantity(x, spec.x.unit)), line(spec.y, quantity(y, spec.y.unit) + interval));
    const right = best.x > chart.over.clientWidth / 2;
    Object.assign(tip.style, {
      left: right ? "auto" : `${best.x + 12}px`,
      right: right ? `${chart.over.clientWidth - best.x + 12}px` : "auto",
      top: `${Math.max(0, best.y - 20)}px`,
    });
  }

  function draw() {
    const height = 330;
    const scale = (side, values, ends) => ({
      time: false,
      distr: side.scale === "logarithmic" ? 3 : 1,
      range: figureRange(side.scale, values, ends),
    });
    const ends = all.filter((point) => point.length > 3).map((point) => point[4]);
    const chart = new uPlot({
      mode: 2,
      width: holder.clientWidth || 500,
      height,
      padding: [10, 14, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: true, y: true, uni: 40 }, points: { show: false } },
      scales: { x: scale(spec.x), y: scale(spec.y, all.map(([, y]) => y), ends) },
      axes: [
        { ...figureAxis(spec.x, largestOf(all.map(([x]) => x))), size: 30 },
        { ...figureAxis(spec.y, largestOf(all.map(([, y]) => y))), size: axisSize },
      ],
      series: [{}, ...spec.series.map((series, index) => ({
        label: series.name,
        stroke: series.colour,
        facets: [{ scale: "x", auto: true }, { scale: "y", auto: true }],
        paths: drawSeries(series, marks[index]),
      }))],
      hooks: { setCursor: [point] },
    }, [null, ...points.map((members) => [members.map(([x]) => x), members.map(([, y]) => y)])], holder);
    chart.over.append(tip);
    takeFingers(chart, ["x", "y"]);
    keepSize(chart, holder, height);
    figure.chart = chart;
  }
  return { figure, draw };
}

function figures() {
  const drawn = data.figures.map(figureChart);
  const bars = delays();
  if (!bars && !drawn.length) return;
  section(data.runs.length ? "Throughput and latency" : "Figures", bars ?? "",
    element("div", { class: "grid" }, ...drawn.map((one) => one.figure)));
  drawn.forEach((one) => one.draw());
}
