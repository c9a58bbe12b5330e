// Heading

function heading() {
  const { title, description, command, scenario_text } = data.header;
  const facts = data.facts.map((fact) =>
    element("div", {}, element("dt", {}, fact.name), element("dd", {}, fact.value)));
  const copy = element("button", { type: "button" }, "Copy");
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(command);
    copy.textContent = "Copied";
  });
  page.append(
    element("p", { class: "brand" }, "Suimon"),
    element("h1", {}, title || "Report"),
    description ? element("p", { class: "description" }, description) : "",
    data.summary ? element("p", { class: "lead", id: "summary" }, unbroken(data.summary)) : "",
    element("dl", { class: "facts", id: "facts" }, ...facts),
    command ? element("div", { class: "command" }, element("code", { id: "command" }, command), copy) : "",
    scenario_text
      ? element("details", {}, element("summary", {}, "The scenario"), element("pre", {}, scenario_text))
      : "",
  );
}

function section(title, ...children) {
  page.append(element("section", {}, element("h2", {}, title), ...children));
}

// ---- Tables

const GRADE_CLASS = { "A+": "good", A: "good", B: "fair", C: "fair", D: "poor", F: "bad" };
const gradeBadge = (grade) => element("span", { class: `grade ${GRADE_CLASS[grade]}` }, grade);

/** The changes that were tried, best first, each with what makes it. */
function advice() {
  if (!data.advice.length) return;
  section("What to change",
    element("div", { class: "card" }, element("ol", { class: "advice", id: "advice" }, ...data.advice.map((one) =>
      element("li", {}, element("strong", {}, one.change), " ", gradeBadge(one.grade),
        element("p", { class: "soft" }, unbroken(one.effect)),
        element("pre", {}, one.how.join("\n")))))),
    element("p", { class: "soft" }, "Each change was simulated. A fifth of the goodput counts as a grade."));
}

function results() {
  if (!data.rows.length) return;
  const hasCall = data.columns.some((column) => column.section === "applications");
  section("Results",
    hasCall ? resultTable("applications", true) : "",
    resultTable("latency", !hasCall),
    element("p", { class: "soft", id: "grading" }, unbroken(data.grading)),
    data.columns.some((column) => column.section === "streams") ? resultTable("streams", false) : "",
    resultTable("cost", false));
}

/** The columns of one section, and the grade where `graded`. */
function resultTable(kind, graded) {
  const shown = data.columns.flatMap((column, index) => (column.section === kind ? [index] : []));
  const head = shown.map((index) => {
    const { title, detail, unit } = data.columns[index];
    // A hyphen at the end is for narrow terminals, which break the word there.
    const [name, which] = title.endsWith("-") ? [title.slice(0, -1) + detail, ""] : [title, detail];
    return element("th", { scope: "col" }, name,
      element("small", {}, which || "\u00a0"), element("small", {}, unit || "\u00a0"));
  });
  if (graded) {
    head.unshift(element("th", { scope: "col" }, "Grade", element("small", {}, "\u00a0"), element("small", {}, "\u00a0")));
  }
  const body = data.rows.map((row) => {
    const cells = shown.map((index) => element("td", {}, row.cells[index]));
    if (graded) cells.unshift(element("td", {}, row.grade ? gradeBadge(row.grade) : ""));
    return element("tr", { class: row.part ? "part" : "run" },
      element("th", { scope: "row", class: "name", title: row.name }, swatch(row.colour), row.name), ...cells);
  });
  return element("div", { class: "card scroll" },
    element("table", { class: "data", id: `results-${kind}` },
      element("thead", {}, element("tr", {}, element("th", { scope: "col", class: "name" }, "Run"), ...head)),
      element("tbody", {}, ...body)));
}

function verdicts() {
  for (const table of data.verdicts) {
    const worlds = table.headings === "worlds";
    const titles = worlds
        ? ["Run", "Simulated", "Tolerance", "Live", "Verdict"]
        : ["Claim", "Paper", "Tolerance", "Measured", "Verdict"];
    const head = titles.map((title, index) =>
      element("th", { scope: "col", class: index === 0 ? "text" : "" }, title));
    const body = table.rows.map((row) => element("tr", {},
      element("td", { class: "text" }, row.claim, row.cause ? element("div", { class: "soft" }, row.cause) : ""),
      ...[row.paper, row.tolerance, row.measured].map((cell) => element("td", {}, cell)),
      element("td", { class: `verdict ${row.verdict.replace(" ", "-")}` }, row.verdict)));
    section(table.title,
      table.note ? element("p", { class: "soft" }, table.note) : "",
      element("div", { class: "card scroll" }, element("table", { class: "data verdicts" },
        element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body))));
  }
}

/** Grids of numbers, from grey to green by heat. */
function heatMaps() {
  for (const map of data.heat_maps) {
    const head = ["", ...map.columns].map((name) => element("th", { scope: "col" }, name));
    const cell = (heat) => heat === null ? element("td", {}, "–")
      : element("td", { class: "heat", style: `--heat: ${heat[1]}%` }, heat[0]);
    const body = map.rows.map(([name, heats]) => element("tr", {},
      element("th", { scope: "row", class: "name" }, name), ...heats.map(cell)));
    section(`${map.group}: ${map.title}`,
      map.caption ? element("p", { class: "soft" }, map.caption) : "",
      element("div", { class: "card scroll" }, element("table", { class: "data heat-map" },
        element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body))));
  }
}

/** Tables of text; rows whose numbers are not to be used are grey. */
function textTables() {
  for (const table of data.tables) {
    const head = table.columns.map((name) => element("th", { scope: "col" }, name));
    head[0]?.classList.add("name");
    const body = table.rows.map(({ cells: [name, ...cells], muted }) => element("tr", { class: muted ? "muted" : "" },
      element("th", { scope: "row", class: "name" }, name), ...cells.map((cell) => element("td", {}, cell))));
    section(table.title, element("div", { class: "card scroll" }, element("table", { class: "data text-table" },
      element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body))));
  }
}
