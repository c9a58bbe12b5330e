// The network: nodes in columns from where flows begin, or in rows where there is no room; links have numbers

/** The steps to each node from where the first flow begins, and from nodes that only send. */
function ranks({ nodes, links, flows }) {
  const rank = nodes.map(() => Infinity);
  const open = flows.map(({ from }) => from)
    .filter((node, nth) => nth === 0 || !flows.some(({ to }) => to === node));
  if (!open.length) open.push(0);
  open.forEach((node) => (rank[node] = 0));
  while (open.length) {
    const node = open.shift();
    for (const { from, to } of links) {
      const other = from === node ? to : to === node ? from : null;
      if (other === null || rank[other] !== Infinity) continue;
      rank[other] = rank[node] + 1;
      open.push(other);
    }
  }
  return rank.map((steps) => (steps === Infinity ? 0 : steps));
}

function svg(tag, properties, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(properties)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function drawTopology(network, width) {
  const rank = ranks(network);
  const row = rank.map((steps, node) => rank.slice(0, node).filter((other) => other === steps).length);
  const inRank = rank.map((steps) => rank.filter((other) => other === steps).length);
  const [columns, deepest] = [Math.max(...rank) + 1, Math.max(...inRank)];
  const across = width / columns > 85;
  const box = { width: Math.min(150, across ? (width - 4) / columns - 26 : width / deepest - 10), height: 30 };
  const [wide, high] = across ? [width, 56 * deepest] : [width, 72 * (columns - 1) + 40];
  const centre = (node) => {
    const beside = (row[node] + 0.5) / inRank[node];
    const along = columns > 1 ? rank[node] / (columns - 1) : 0.5;
    return across
      ? [box.width / 2 + 2 + along * (wide - box.width - 4), beside * high]
      : [beside * wide, box.height / 2 + 5 + along * (high - box.height - 10)];
  };
  const parts = [];
  network.links.forEach(({ from, to }, nth) => {
    const [[x1, y1], [x2, y2]] = [centre(from), centre(to)];
    // Links between the same nodes bend away from each other.
    const joins = (other) => [other.from, other.to].sort().join() === [from, to].sort().join();
    const alike = network.links.filter(joins);
    const bend = (alike.indexOf(network.links[nth]) - (alike.length - 1) / 2) * 26;
    const [x, y] = [(x1 + x2) / 2 + (across ? 0 : bend), (y1 + y2) / 2 + (across ? bend : 0)];
    parts.push(svg("path", { d: `M${x1} ${y1}Q${2 * x - (x1 + x2) / 2} ${2 * y - (y1 + y2) / 2} ${x2} ${y2}` }),
      svg("circle", { cx: x, cy: y, r: 9 }), svg("text", { class: "number", x, y: y + 4, "text-anchor": "middle" }, String(nth + 1)));
  });
  network.nodes.forEach((name, node) => {
    const [x, y] = centre(node);
    const most = Math.floor(box.width / 7.5);
    parts.push(svg("rect", { x: x - box.width / 2, y: y - box.height / 2, width: box.width, height: box.height, rx: 6 }),
      svg("text", { x, y: y + 4.5, "text-anchor": "middle" }, name.length > most ? `${name.slice(0, most - 1)}…` : name));
  });
  return svg("svg", { viewBox: `0 0 ${wide} ${high}`, "aria-hidden": "true" }, ...parts);
}

function topology() {
  const network = data.topology;
  if (!network?.nodes.length) return;
  const name = (node) => network.nodes[node];
  const links = network.links.map(({ from, to, text }) =>
    element("li", {}, unbroken(`${name(from)} – ${name(to)}: ${text.join("; ")}`)));
  const flows = network.flows.map(({ from, to, names }) => `${name(from)} → ${name(to)}: ${names}`).join("; ");
  const holder = element("div", { role: "img", "aria-label": `The network: ${network.nodes.join(", ")}, joined by the links below.` });
  page.append(element("figure", { class: "card topology", id: "topology" }, holder,
    element("ol", { class: "soft" }, ...links),
    flows ? element("p", { class: "soft" }, `Flows: ${flows}.`) : ""));
  let drawn = 0;
  const draw = () => {
    const width = holder.clientWidth;
    if (!width || width === drawn) return;
    drawn = width;
    holder.replaceChildren(drawTopology(network, width));
  };
  new ResizeObserver(draw).observe(holder);
  draw();
}
