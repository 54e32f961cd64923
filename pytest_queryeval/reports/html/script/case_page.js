// One case: everything that the report has of it.

function section(title, ...children) {
  const inside = content(children);
  return inside.length ? make("section", { "data-section": title.toLowerCase() }, make("h3", {}, title), inside) : null;
}

function bullets(texts) {
  return texts.length ? make("ul", {}, texts.map((text) => make("li", {}, text))) : null;
}

function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return known.length ? make("dl", { class: "facts" }, known.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)))) : null;
}

// Missed thresholds first, then those that are met, then what is only measured.
function scoreTable(cases, place, details) {
  const missed = new Set((details.violations ?? []).map(({ metric }) => metric));
  const needs = new Map(Object.entries(details.needs ?? {}));
  const found = [...cases.scores]
    .map(([name, values]) => ({ name, value: values[place], need: needs.get(name) }))
    .filter(({ value, need }) => value !== null || need)
    .map((own) => ({ ...own, word: missed.has(own.name) ? "missed" : own.need && own.value !== null ? "met" : "" }))
    .sort((one, other) => ["missed", "met", ""].indexOf(one.word) - ["missed", "met", ""].indexOf(other.word));
  const hasBefore = found.some(({ name }) => cases.before(name, place) !== undefined);
  const rows = found.map(({ name, value, need, word }) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, oneLine(name, 80)),
      hasBefore && make("td", { class: "number" }, score(cases.before(name, place) ?? value)),
      make("td", { class: "number" }, score(value)),
      make("td", {}, need ?? ""),
      make("td", {}, word && make("span", { class: `chip ${word}` }, word)),
    ),
  );
  const heads = ["metric", hasBefore && "before", "score", "needs", "verdict"].filter(Boolean).map((name) => make("th", { scope: "col", class: ["before", "score"].includes(name) && "number" }, name));
  return rows.length ? scrollable("Scores", table("Scores", [heads], make("tbody", {}, rows))) : null;
}

function sides(...panes) {
  return make("div", { class: "sides" }, panes.map(([title, ...inside]) => make("div", {}, make("h4", {}, title), inside)));
}

function failure(error) {
  return error ? make("p", { class: "fault" }, make("strong", {}, error.kind), ` ${error.message}`) : null;
}

function chip(word) {
  return make("span", { class: `chip ${word.replaceAll(" ", "-")}` }, word);
}

// A button that copies what stands in an element; `named` tells readers of screens which one.
function copyButton(named, element, words = "Copy") {
  const button = make("button", { type: "button", class: "small", "aria-label": `Copy ${named}`, "aria-live": "polite" }, words);
  button.addEventListener("click", async () => {
    const isDone = await copied(element.querySelector("code")?.textContent ?? element.textContent);
    button.textContent = isDone ? "Copied" : "Not copied";
    setTimeout(() => (button.textContent = words), 2_000);
  });
  return button;
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // A browser may keep the clipboard from pages that are files.
    const focused = document.activeElement;
    const area = make("textarea", { class: "unseen", "aria-hidden": "true" });
    area.value = text;
    document.getElementById("case").append(area);
    area.select();
    const isDone = document.execCommand("copy");
    area.remove();
    focused?.focus();
    return isDone;
  }
}

// A text of tokens with a button that copies it; `show` shows it by other tokens.
function pane(title, named, found, tag, ...around) {
  const place = make("div", {}, coloured(found, tag));
  return {
    side: [[title, copyButton(named, place)], around, place],
    show: (tokens) => place.replaceChildren(coloured(tokens, tag)),
  };
}

// Two queries next to each other, or one that is compared with a text that is shown elsewhere, with what only one of them
// has marked by its tag, and a button that lays them out.
// Everywhere `del`, which is red, marks what is wrong in a prediction, and `ins`, green, what gold has instead.
function queries(kind, shownQueries, elsewhere) {
  const texts = shownQueries.map(({ query }) => tokens(withoutMargins(query ?? ""), kind));
  const compared = [texts[0], texts[1] ?? tokens(withoutMargins(elsewhere ?? ""), kind)];
  const bothThere = compared.every((found) => found.length);
  const isMarked = bothThere && markDifferences(...compared);
  const panes = shownQueries.map(({ title, named, tag, error, none, chips = [] }, at) => {
    const above = [chips, failure(error)];
    if (!texts[at].length) return { side: [title, above, error ? null : make("p", { class: "quiet" }, none)] };
    return pane([title, ...chips], named, texts[at], tag, failure(error));
  });
  const laid = texts.map((found) => (found.length ? laidOut(found, kind) : null));
  return [
    laid.some(Boolean) ? prettyButton((isPretty) => panes.forEach(({ show }, at) => show?.((isPretty && laid[at]) || texts[at]))) : null,
    sides(...panes.map(({ side }) => side)),
    bothThere && !isMarked ? make("p", { class: "quiet" }, "The texts have too little in common, or are too long, for their differences to be marked.") : null,
  ];
}

function prettyButton(change) {
  const button = make("button", { type: "button", class: "small pretty", "aria-pressed": "false", title: "Lay the queries out in lines; only what is shown changes" }, "Pretty");
  button.addEventListener("click", () => {
    const isPretty = button.getAttribute("aria-pressed") === "false";
    button.setAttribute("aria-pressed", String(isPretty));
    change(isPretty);
  });
  return button;
}

// Answers that are JSON: one member a line, and marked where the report says that they differ.
function jsonAnswers({ gold, predicted }, { missing = [], extra = [], changed = [] }) {
  if (!gold?.query && !predicted?.query && !predicted?.error) return null;
  const paths = (rows) => rows.map(([path]) => String(valueText(path)));
  const [first, second] = [gold, predicted].map((own) => (own?.query ? jsonLines(own.query) : null));
  const isPrecise = first !== null && second !== null;
  const texts = [first ?? tokens(withoutMargins(gold?.query ?? ""), "json"), second ?? tokens(withoutMargins(predicted?.query ?? ""), "json")];
  if (isPrecise) {
    markMembers(first, paths(missing), paths(changed.map((pair) => pair.gold)));
    markMembers(second, paths(extra), paths(changed.map((pair) => pair.predicted)));
  } else if (texts[0][0]?.key === texts[1][0]?.key) markDifferences(...texts); // else they are of different forms
  const side = (title, named, own, found, tag, whole) =>
    found.length
      ? [...pane(title, named, found, tag, failure(own?.error)).side, whole ? make("details", {}, make("summary", {}, "The whole text"), coloured(tokens(own.query, "json"), tag)) : null]
      : [title, own?.error ? failure(own.error) : make("p", { class: "quiet" }, "no answer")];
  const isPart = second !== null && !isJson(predicted.query);
  return sides(side("Gold answer", "the gold answer", gold, texts[0], "ins"), side("Predicted answer", "the predicted answer", predicted, texts[1], "del", isPart));
}

// Paths of JSON that differ, a line each.
function pathTable({ missing = [], extra = [], changed = [], counts }) {
  const none = (word) => make("td", { class: "null" }, word);
  const value = (own, tag) => make("td", {}, make(tag, { class: "code" }, valueText(own)));
  const line = (kind, path, ...cells) => make("tr", { class: kind }, make("th", { scope: "row", class: "code" }, valueText(path)), cells);
  const rows = [
    ...missing.map(([path, own]) => line("missing", path, value(own, "ins"), none("missing"))),
    ...extra.map(([path, own]) => line("extra", path, none("not in the gold answer"), value(own, "del"))),
    ...changed.map(({ gold, predicted }) => line("changed", gold[0], value(gold[1], "ins"), value(predicted[1], "del"))),
  ];
  const left = Math.max(0, amount(counts?.missing) - missing.length - changed.length, amount(counts?.extra) - extra.length - changed.length);
  if (left) rows.push(make("tr", {}, make("td", { class: "more", colspan: 3 }, `… ${number(left)} more`)));
  const heads = ["path", "gold", "predicted"].map((name) => make("th", { scope: "col" }, name));
  return rows.length ? scrollable("Differences", table("Paths that differ", [heads], make("tbody", {}, rows))) : null;
}

// The terms of SDMX selections by dimension, on both sides.
function selections({ missing = [], extra = [] }, dimensions) {
  const found = new Map();
  const of = (name) => found.get(name) ?? found.set(name, { both: [], missing: [], extra: [], left: 0 }).get(name);
  if (typeof dimensions === "object" && dimensions !== null) {
    for (const [name, own] of Object.entries(dimensions)) {
      const lists = [own.true_positives ?? [], own.false_negatives ?? [], own.false_positives ?? []];
      const counts = ["true_positives", "false_negatives", "false_positives"].map((list) => amount(own.counts?.[list]));
      Object.assign(of(name), { both: lists[0], missing: lists[1], extra: lists[2], left: counts.reduce((sum, count, at) => sum + Math.max(0, count - lists[at].length), 0) });
    }
  } else {
    for (const [name, ...term] of missing) of(name).missing.push(term);
    for (const [name, ...term] of extra) of(name).extra.push(term);
  }
  if (!found.size) return null;
  const term = ([code, name], tag) => {
    const inside = [make("span", { class: "code" }, code ?? "(no id)"), name ? [" ", make("span", { class: "quiet" }, name)] : []].flat();
    return make("li", {}, tag ? make(tag, {}, inside) : inside);
  };
  const side = (both, lone, tag) => make("td", {}, both.length + lone.length ? make("ul", { class: "terms" }, lone.map((own) => term(own, tag)), both.map((own) => term(own))) : make("span", { class: "null" }, "nothing"));
  const isDifferent = (own) => own.missing.length + own.extra.length > 0;
  const rows = [...found]
    .sort(([, one], [, other]) => isDifferent(other) - isDifferent(one))
    .map(([name, own]) =>
      make(
        "tr",
        { class: isDifferent(own) && "changed" },
        make("th", { scope: "row" }, name, own.left ? make("span", { class: "quiet" }, ` … ${number(own.left)} more`) : null),
        side(own.both, own.missing, "ins"),
        side(own.both, own.extra, "del"),
      ),
    );
  const heads = ["dimension", "gold answer", "predicted answer"].map((name) => make("th", { scope: "col" }, name));
  return scrollable("Selections", table("Selected terms by dimension", [heads], make("tbody", {}, rows)));
}

// Answers that are tables.
function answers({ gold, predicted }, { missing = [], extra = [], changed = [] }, terms) {
  if (!gold?.columns && !predicted?.columns) return null;
  const pairs = (one, other) => changed.map((both) => [both[one], both[other]]);
  const marks = {
    gold: { word: "missing", tag: "ins", lone: missing, changed: pairs("gold", "predicted"), caption: "Gold's rows" },
    predicted: { word: "extra", tag: "del", lone: extra, changed: pairs("predicted", "gold"), caption: "Predicted's rows" },
  };
  const ofGold = gold ? [["Gold answer", shape(gold), answer(gold, marks.gold, terms)]] : [];
  return sides(...ofGold, ["Predicted answer", shape(predicted), answer(predicted, marks.predicted, terms)]);
}

function shape(execution) {
  return execution?.shape ? make("p", { class: "quiet shape" }, execution.shape) : null;
}

function answer(execution, marks, terms) {
  if (!execution?.columns) return make("p", { class: "quiet" }, "no answer");
  const sample = exact(execution.sample ?? []);
  return [
    sample.length ? sampleTable(execution.columns, sample, marks, terms) : null,
    execution.more ? make("p", { class: "quiet more" }, execution.more) : null,
  ];
}

// Whether other data tells the predicted query from gold, with the answers in the database that does.
function challenge(result, gold, predicted, terms) {
  if (!result) return null;
  const answered = (query, rows) => ({ columns: query?.columns, sample: rows ?? [] });
  return [
    make("p", {}, result.text),
    result.script ? answers({ gold: answered(gold, result.gold), predicted: answered(predicted, result.predicted) }, {}, terms) : null,
    result.script ? make("details", {}, make("summary", {}, "The script of the database"), make("pre", { tabindex: 0 }, result.script)) : null,
  ];
}

function trials(kind, entries) {
  if (!entries?.length) return null;
  const names = [...new Set(entries.flatMap((trial) => Object.keys(trial.scores ?? {})))];
  const rows = entries.map(({ passed, verdict, scores = {}, violations = [], predicted, prediction }, place) => {
    const missed = new Set(violations.map(({ metric }) => metric));
    const query = predicted?.query ? tokens(withoutMargins(predicted.query), kind) : null;
    const facts_ = facts(predictionFacts(prediction).slice(2));
    const steps = timeline(prediction?.steps, prediction?.about_steps, kind);
    const summary = prediction?.abstained ? "abstained" : predicted?.error ? `${predicted.error.kind}: ${oneLine(predicted.error.message, 60)}` : oneLine(predicted?.query ?? "", 60);
    return make(
      "tr",
      {},
      make("th", { scope: "row" }, number(place + 1)),
      make("td", {}, make("span", { class: `chip ${{ true: "passed", false: "failed" }[passed] ?? ""}` }, verdict)),
      names.map((name) => make("td", { class: missed.has(name) ? "number some" : "number" }, score(scores[name]))),
      make("td", { class: "number" }, seconds(prediction?.seconds)),
      make("td", {}, query || predicted?.error || facts_ || steps ? make("details", {}, make("summary", { class: "code" }, summary), failure(predicted?.error), query ? coloured(query, "del") : null, facts_, steps) : ""),
    );
  });
  const numbers = new Set([...names, "took"]);
  const heads = ["trial", "verdict", ...names, "took", "predicted"].map((name, at) => make("th", { scope: "col", class: at > 1 && numbers.has(name) && "number" }, breakable(oneLine(name, 60))));
  return scrollable("Trials", table("Trials", [heads], make("tbody", {}, rows)));
}

function predictionFacts(prediction) {
  if (!prediction) return [];
  const metadata = Object.entries(exact(prediction.metadata ?? {})).map(([name, value]) => [oneLine(name, 60), valueText(value)]);
  const reason = prediction.abstained ? [["abstained", prediction.reason || "without a reason"]] : [];
  return [["predictor", prediction.source], ["prediction took", seconds(prediction.seconds)], ...reason, ...metadata];
}

// What was predicted before, compared with what is predicted now.
function againstBaseline(kind, { earlier, predicted }, outcome) {
  if (!earlier) return null;
  const isSame = earlier.query !== null && earlier.query === predicted?.query;
  const isWorse = earlier.outcome === "passed" && outcome !== "passed";
  const before = { title: "Earlier prediction", named: "the earlier prediction", tag: isWorse ? "ins" : "del", query: isSame ? null : earlier.query, error: earlier.error, none: isSame ? "the same query as now" : "an answer without a query", chips: [chip(earlier.outcome)] };
  return [
    earlier.summary ? make("p", {}, make("span", { class: "quiet" }, "Before: "), earlier.summary) : null,
    queries(kind, [before], predicted?.query),
  ];
}

// The edits after which predicted has gold's answer; what only repeats the headline, or the kind of failure, is left out.
function causes(found, headline, failed) {
  if (!found?.edits?.length || found.edits.every(({ label, change }) => label === failed && change === headline)) return null;
  const edit = ({ label, clause, change }) =>
    make("li", {}, chip(oneLine(label, 40).replaceAll("-", " ")), clause && make("span", { class: "quiet" }, clause), change !== headline && make("span", { class: "code" }, change));
  const isChange = found.edits.some(({ change }) => change.includes(" → "));
  return make("div", {}, isChange ? make("p", { class: "quiet" }, "cause, predicted → gold") : null, make("ul", { class: "causes" }, found.edits.map(edit)));
}

function conversation(messages) {
  if (!Array.isArray(messages) || !messages.length) return null;
  return make("dl", { class: "conversation" }, messages.map(({ role, content: said }) => make("div", {}, make("dt", {}, valueText(role)), make("dd", {}, valueText(said)))));
}

// What was asked, what is wrong, and where the case stands.
function overview(cases, place, details, headline) {
  const { list } = cases;
  const message = details.message ?? list.message[place];
  const review = details.review ?? list.review[place];
  const thresholds = message.replace(headline, "").replace(/^[;\s]+|[:;\s]+$/g, "");  // the message has it, too
  const nodeid = make("span", {}, cases.nodeid(place));
  const about = [list.kind[place], list.difficulty[place], details.source, details.gold_source && `gold on ${details.gold_source}`, list.tags[place].join(", ")].filter(Boolean);
  const where = `${list.path[place]}:${list.line[place]}${details.place ? ` (${details.place})` : ""}`;
  return make(
    "div",
    { class: "overview" },
    make("p", { class: "question" }, details.question ?? list.question[place]),
    details.evidence ? make("p", { class: "evidence" }, make("span", { class: "quiet" }, "Evidence: "), details.evidence) : null,
    conversation(details.conversation),
    headline
      ? make("div", { class: `reason ${list.outcome[place]}` }, make("p", { class: "headline" }, headline), thresholds ? make("p", { class: "message" }, thresholds) : null, causes(details.cause, headline, details.predicted?.error?.kind))
      : null,
    review ? make("p", { class: "review" }, make("span", { class: "quiet" }, "Review of gold: "), review) : null,
    make("p", { class: "place" }, [where, ...about].flatMap((text, at) => [at ? " · " : "", make("span", {}, text)]), " ", copyButton("the node id", nodeid, "Copy node id")),
  );
}

function casePage(cases, place, details) {
  const { list } = cases;
  const kind = list.kind[place];
  const { indicator_selection: selection, ...others } = exact(details.details ?? {});
  const notes = (kindOfNote) => (details.notes ?? []).filter(([own]) => own === kindOfNote).map(([, text]) => text);
  const difference = exact(details.difference ?? {});
  const { gold, predicted } = details;
  const repaired = details.cause?.repaired_query;
  const terms = kind === "sparql" ? new Terms(gold?.query, predicted?.query) : undefined;
  const isText = kind === "json" || kind === "sdmx";
  const headline = (details.why ?? list.why[place]) || (details.message ?? list.message[place]);
  const columns = (details.by_column ?? []).filter((line) => line !== headline);
  // A query that is not there says no more than the headline.
  const noGold = details.answerable === false ? "none: the question has no answer" : "none";
  const noAnswer = details.prediction?.missing ? "none: the file has no prediction" : details.prediction?.abstained ? "none: the system abstained" : null;
  const noQuery = noAnswer ?? (predicted ? "a stored answer, no query" : "none");
  const isTold = predicted?.error && !predicted.query && predicted.error.message === headline;
  const differences = { json: () => pathTable(difference), sdmx: () => selections(difference, others.dimensions) };
  const asked = [
    { title: "Gold query", named: "the gold query", tag: "ins", query: gold?.query, none: gold ? "a stored answer, no query" : noGold },
    { title: "Predicted query", named: "the predicted query", tag: "del", query: predicted?.query, error: isTold ? null : predicted?.error, none: isTold ? "none" : noQuery },
  ];
  // What the suite expects of any answer is judged without a gold.
  const shown = gold || details.answerable === false ? asked : asked.slice(1);
  return [
    overview(cases, place, details, headline),
    section(details.difference || kind !== "sdmx" ? "Differences" : "Selections", columns.length ? make("p", { class: "quiet" }, "gold → predicted") : null, bullets(columns), differences[kind]?.() ?? differenceTable(difference, gold?.columns, terms, details.places), bullets(details.not_shown ?? [])),
    section("Hints", bullets(notes("hint"))),
    section("Expectations that do not hold", bullets(notes("expected"))),
    gold || predicted ? (isText ? section("Answers", jsonAnswers(details, kind === "json" ? difference : {})) : section("Queries", queries(kind, shown))) : null,
    section("Against the baseline", againstBaseline(kind, details, list.outcome[place])),
    isText ? null : section("Answers", answers(details, difference, terms)),
    section("Challenge", challenge(details.challenge, gold, predicted, terms)),
    section("Repaired query", repaired && repaired !== gold?.query ? queries(kind, [{ title: "Repaired query", named: "the repaired query", tag: "ins", query: repaired }], predicted?.query) : null),
    section("Steps", timeline(details.prediction?.steps, details.prediction?.about_steps, kind, terms)),
    section("Scores", scoreTable(cases, place, details)),
    section("Trials", trials(kind, details.trials)),
    section("Violations", bullets(notes("violation"))),
    section("Texts", bullets(notes("texts"))),
    section("Notes", bullets(notes("note"))),
    section(
      "Prediction and times",
      facts([...predictionFacts(details.prediction), ["gold query ran", ran(gold)], ["predicted query ran", ran(predicted)], ["scoring took", seconds(details.scoring?.seconds)]]),
    ),
    selection ? make("details", {}, make("summary", {}, "Selection"), make("pre", { tabindex: 0 }, selection)) : null,
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

// A case that a link leads to need not be in the filtered list: then those next to it are those of all cases.
async function showCase(cases, place, found, state) {
  const dialog = document.getElementById("case");
  const details = await cases.details(place);
  const listed = found.includes(place) ? found : cases.order;
  const at = listed.indexOf(place);
  const beside = (words, step) => {
    const other = listed[at + step];
    const rel = step < 0 ? "prev" : "next";
    return other === undefined ? make("span", { class: `quiet ${rel}`, "aria-hidden": "true" }, words) : make("a", { href: cases.link(other, state), class: rel, rel }, words);
  };
  const close = make("button", { type: "button", class: "close" }, "Close");
  close.addEventListener("click", () => dialog.close());
  const outcome = cases.list.outcome[place];
  const title = make("h2", { id: "case-title", tabindex: -1, autofocus: true }, oneLine(cases.list.id[place], 200));
  const position = make("span", { class: "quiet" }, `${number(at + 1)} of ${number(listed.length)}`);
  const head = make("header", {}, title, chip(outcome), make("nav", { "aria-label": "Cases beside this one" }, beside("Previous", -1), position, beside("Next", 1)), close);
  dialog.replaceChildren(...content([head, make("div", { class: "inside" }, safely(() => (cases.list.systems ? comparedCase : casePage)(cases, place, details)))]));
  dialog.onkeydown = (event) => {
    const rel = { ArrowLeft: "prev", ArrowRight: "next" }[event.key];
    const isSideways = [...dialog.querySelectorAll(".scroll, pre")].some((own) => own.contains(event.target) && own.scrollWidth > own.clientWidth);
    if (rel && !isSideways && !event.altKey && !event.ctrlKey && !event.metaKey && !event.shiftKey) dialog.querySelector(`header a.${rel}`)?.click();
  };
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  title.focus();
}
