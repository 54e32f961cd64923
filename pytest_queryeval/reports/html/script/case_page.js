// One case: everything that the report has of it.

function section(title, ...children) {
  const inside = content(children);
  return inside.length ? make("section", {}, make("h3", {}, title), inside) : null;
}

function bullets(items) {
  if (items === undefined || items === null) return null;
  const texts = [items].flat().map(valueText);
  return texts.length ? make("ul", {}, texts.map((text) => make("li", {}, text))) : null;
}

function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return known.length ? make("dl", { class: "facts" }, known.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)))) : null;
}

function need({ min, max }) {
  const low = min === null || min === undefined ? null : `at least ${min}`;
  const high = max === null || max === undefined ? null : `at most ${max}`;
  return [low, high].filter(Boolean).join(" and ");
}

function scoreTable(cases, place, details) {
  const violations = new Map((details.violations ?? []).map((own) => [own.metric, own]));
  const thresholds = new Map(Object.entries(details.thresholds ?? {}));
  const rows = [];
  for (const [name, values] of cases.scores) {
    const threshold = violations.get(name) ?? thresholds.get(name);
    if (values[place] === null && !threshold) continue;
    const word = violations.has(name) ? "missed" : threshold && values[place] !== null ? "met" : "";
    rows.push(
      make(
        "tr",
        {},
        make("th", { scope: "row" }, oneLine(name, 80)),
        make("td", { class: "number" }, score(values[place])),
        make("td", {}, threshold ? need(threshold) : ""),
        make("td", {}, word && make("span", { class: `chip ${word}` }, word)),
      ),
    );
  }
  return rows.length ? scrollable("Scores", table("Scores", ["metric", "score", "needs", "verdict"], rows)) : null;
}

function sides(gold, predicted) {
  return make("div", { class: "sides" }, make("div", {}, make("h4", {}, "Gold"), gold), make("div", {}, make("h4", {}, "Predicted"), predicted));
}

function failure(error) {
  return error ? make("p", { class: "fault" }, make("strong", {}, error.kind), ` ${error.message}`) : null;
}

function queries(kind, { gold, predicted }) {
  if (!gold?.query && !predicted?.query && !predicted?.error) return null;
  const first = tokens(withoutMargins(gold?.query ?? ""), kind);
  const second = tokens(withoutMargins(predicted?.query ?? ""), kind);
  const bothThere = first.length && second.length;
  const isMarked = bothThere && markDifferences(first, second);
  const note = bothThere && !isMarked ? make("p", { class: "quiet" }, "The texts have too little in common, or are too long, for their differences to be marked.") : null;
  const none = () => make("p", { class: "quiet" }, "none");
  return [
    sides(first.length ? coloured(first, "del") : none(), [failure(predicted?.error), second.length ? coloured(second, "ins") : predicted?.error ? null : none()]),
    note,
  ];
}

function answers({ gold, predicted }, { missing = [], extra = [], changed = [] }) {
  if (!gold?.columns && !predicted?.columns) return null;
  const pairs = (one, other) => changed.map((both) => [both[one], both[other]]);
  const marks = {
    gold: { word: "missing", tag: "del", lone: missing, changed: pairs("gold", "predicted"), caption: "Gold's rows" },
    predicted: { word: "extra", tag: "ins", lone: extra, changed: pairs("predicted", "gold"), caption: "Predicted's rows" },
  };
  return sides(answer(gold, marks.gold), answer(predicted, marks.predicted));
}

function answer(execution, marks) {
  if (!execution?.columns) return make("p", { class: "quiet" }, "no answer");
  const rows = execution.row_count;
  const sample = exact(execution.sample ?? []);
  const some = sample.length < rows ? `, the first ${number(sample.length)} are shown` : "";
  return [make("p", { class: "quiet" }, `${number(rows)} row${rows === 1 ? "" : "s"}${some}`), sampleTable(execution.columns, sample, marks)];
}

function trials(kind, entries) {
  return entries?.map((trial, place) => {
    const word = trial.passed === null ? "no threshold" : trial.passed ? "passed" : "failed";
    const scores = Object.entries(trial.scores ?? {}).map(([name, value]) => `${name} ${score(value)}`);
    return make(
      "details",
      {},
      make("summary", {}, `Trial ${place + 1} `, make("span", { class: `chip ${word.replace(" ", "-")}` }, word), ` ${oneLine(scores.join(", "), 200)}`),
      failure(trial.predicted?.error),
      trial.predicted?.query ? coloured(tokens(withoutMargins(trial.predicted.query), kind), "ins") : null,
      facts(predictionFacts(trial.prediction)),
    );
  });
}

function predictionFacts(prediction) {
  if (!prediction) return [];
  const metadata = Object.entries(exact(prediction.metadata ?? {})).map(([name, value]) => [oneLine(name, 60), valueText(value)]);
  return [["predictor", prediction.source], ["prediction took", seconds(prediction.seconds)], ...metadata];
}

function casePage(cases, place, details) {
  const { list } = cases;
  const kind = list.kind[place];
  const { notes, violations, indicator_selection: selection, ...others } = exact(details.details ?? {});
  const difference = exact(details.difference ?? {});
  const message = details.message ?? list.message[place];
  return [
    make("p", { class: "question" }, details.question ?? list.question[place]),
    section("Evidence", details.evidence),
    message ? make("p", { class: list.outcome[place] === "passed" ? "quiet message" : "fault message" }, message) : null,
    section("Scores", scoreTable(cases, place, details)),
    section("Queries", queries(kind, details)),
    section("Differences", difference.summary ? make("p", {}, difference.summary) : null, differenceTable(difference, details.gold?.columns)),
    section("Answers", answers(details, difference)),
    section("Selection", selection ? make("pre", { tabindex: 0 }, selection) : null),
    section("Violations", bullets(violations)),
    section("Notes", bullets(notes)),
    section("Trials", trials(kind, details.trials)),
    section(
      "Prediction and times",
      facts([...predictionFacts(details.prediction), ["gold ran", ran(details.gold)], ["predicted ran", ran(details.predicted)], ["scoring took", seconds(details.scoring?.seconds)]]),
    ),
    section("About", facts([["where", `${list.path[place]}:${list.line[place]}${details.place ? ` (${details.place})` : ""}`], ["node id", cases.nodeid(place)], ["kind", kind], ["source", details.source], ["difficulty", list.difficulty[place]], ["tags", list.tags[place].join(", ")]])),
    Object.keys(others).length ? make("details", {}, make("summary", {}, "Details of the metrics"), make("pre", { tabindex: 0 }, json(others, { margin: "" }))) : null,
  ];
}

// A report may come from another program: an invalid case is reported, and the rest of the page works.
function safely(made) {
  try {
    return content(made());
  } catch (error) {
    return make("p", { class: "fault" }, `This case cannot be shown: ${error.message}`);
  }
}

async function showCase(cases, place, found, state) {
  const dialog = document.getElementById("case");
  const details = await cases.details(place);
  const at = found.indexOf(place);
  const beside = (words, step) => {
    const other = at < 0 ? undefined : found[at + step];
    return other === undefined ? make("span", { class: "quiet", "aria-hidden": "true" }, words) : make("a", { href: cases.link(other, state) }, words);
  };
  const close = make("button", { type: "button", class: "close" }, "Close");
  close.addEventListener("click", () => dialog.close());
  const outcome = cases.list.outcome[place];
  const title = make("h2", { id: "case-title", tabindex: -1, autofocus: true }, oneLine(cases.list.id[place], 200));
  const head = make("header", {}, title, make("span", { class: `chip ${outcome}` }, outcome), make("nav", { "aria-label": "Cases beside this one" }, beside("Previous", -1), beside("Next", 1)), close);
  dialog.replaceChildren(...content([head, make("div", { class: "inside" }, safely(() => casePage(cases, place, details)))]));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  title.focus();
}
