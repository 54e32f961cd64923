// One case of a comparison: gold next to the predictions and answers of all systems.

function comparedCase(cases, place, details) {
  const { list } = cases;
  if (!details) return make("p", { class: "quiet" }, "With the queries and answers of all cases, this page would be too large. Those of this case are in the pages of the runs.");
  const kind = list.kind[place];
  const members = (text) => (kind === "json" && text ? jsonLines(text) : null);
  const written = (text) => tokens(withoutMargins(text ?? ""), kind);
  const paths = (rows) => rows.map(([path]) => String(valueText(path)));
  const gold = members(details.gold?.query) ?? written(details.gold?.query);
  const none = () => make("p", { class: "quiet" }, "no query");
  const columns = details.systems.map(({ outcome, message, predicted, difference }, at) => {
    const { missing = [], extra = [], changed = [] } = exact(difference ?? {});
    const lines = members(predicted?.query);
    const query = lines ?? written(predicted?.query);
    if (lines) markMembers(lines, paths(extra), paths(changed.map((both) => both.predicted)));
    else markDifferences(written(details.gold?.query), query);
    const name = list.systems[at];
    const marks = { word: "extra", tag: "del", lone: extra, changed: changed.map((both) => [both.predicted, both.gold]), caption: `Rows of ${name}` };
    return make(
      "div",
      {},
      make("h3", {}, oneLine(name, 120), " ", chip(outcome), " ", make("span", { class: "quiet" }, score(cases.score(name, place)))),
      message ? make("p", { class: outcome === "passed" ? "quiet message" : "fault message" }, message) : null,
      failure(predicted?.error),
      query.length ? coloured(query, "del") : none(),
      predicted?.columns ? answer(predicted, marks) : null,
    );
  });
  const rows = { word: "missing", tag: "ins", lone: [], changed: [], caption: "Gold's rows" };
  return [
    make("p", { class: "question" }, details.question ?? list.question[place]),
    section("Evidence", details.evidence),
    section("Gold", gold.length ? coloured(gold, "ins") : none(), details.gold?.columns ? answer(details.gold, rows) : null),
    make("div", { class: "sides" }, columns),
    section("About", facts([["where", `${list.path[place]}:${list.line[place]}`], ["node id", cases.nodeid(place)], ["difficulty", list.difficulty[place]], ["tags", list.tags[place].join(", ")]])),
  ];
}
