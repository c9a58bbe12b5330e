// The page, top to bottom

heading();
topology();
advice();
verdicts();
heatMaps();
textTables();
results();
figures();
overTime();
if (data.notes.length) {
  section("Notes", element("ul", { id: "notes" }, ...data.notes.map((note) => element("li", {}, note))));
}
page.append(element("footer", {},
  `Made by Suimon ${data.header.version}. Charts by uPlot, © Leon Sorokin, MIT licence (its text is in this page's source).`));
