// Reviewing: cases one after the other, each decision a line of the reviewer's file. All of it works by keyboard.

const LISTED = 60; // cases around the one that is shown
const OPEN_ANSWERS = 4; // others are folded
const DIGITS = 9;
const at = (id) => document.getElementById(id);
// `place` is the case that is shown, `wanted` the one that was asked for last.
const page = { reviewer: "", choices: [], cases: [], place: null, wanted: null, shown: null, answers: [], decided: [], isAudit: false };

async function ask(path, body) {
  let response;
  try {
    const options = body && { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
    response = await fetch(path, options);
  } catch {
    throw new Error("The server does not answer: start `queryeval review` again. What was decided is in the review file.");
  }
  if (response.status === 403) throw new Error("Open the page by the address that `queryeval review` printed.");
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.problem ?? `The server answers with status ${response.status}.`);
  return answer;
}

function plural(count, noun) {
  return `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
}

function say(text, isProblem = false) {
  at("status").className = isProblem ? "fault" : "";
  at("status").textContent = shown(text);
}

// Runs something that the server may refuse, and shows why; false where it was.
async function attempt(action) {
  try {
    await action();
    return true;
  } catch (error) {
    say(error.message, true);
    return false;
  }
}

function remembered(name, value) {
  try {
    if (value !== undefined) localStorage.setItem(`queryeval-review-${name}`, value);
    return localStorage.getItem(`queryeval-review-${name}`) ?? "";
  } catch {
    return ""; // a browser may keep pages from storing anything
  }
}

// The list

function matches(item) {
  const [show, reason, search] = ["show", "reason", "search"].map((id) => at(id).value);
  if (show === "open" && item.decision) return false;
  if (show === "decided" && !item.decision) return false;
  if (show === "conflict" && !item.conflict) return false;
  if (show === "unsure" && item.decision?.decision !== page.choices.at(-1).name) return false;
  if (reason && !item.reasons?.includes(reason)) return false;
  return `${item.nodeid} ${item.question}`.toLowerCase().includes(search.toLowerCase());
}

// The cases that match, and the one that is shown: whoever moves on starts from there.
function listed() {
  return page.cases.flatMap((item, place) => (place === page.place || matches(item) ? [place] : []));
}

function openFirstMatch() {
  const place = page.cases.findIndex(matches);
  if (place < 0) say("No case matches.", true);
  else attempt(() => open(place));
}

function showList() {
  const places = listed();
  const isOutside = page.place !== null && !matches(page.cases[page.place]);
  const around = Math.max(0, places.indexOf(page.place));
  const first = Math.max(0, Math.min(around - LISTED / 2, places.length - LISTED));
  const entry = (place) => {
    const item = page.cases[place];
    const words = item.decision?.decision ?? (item.stale ? "changed" : null);
    const inside = [make("span", { class: "rank" }, number(place + 1)), make("span", { class: "id" }, oneLine(item.id, 80)), words ? chip(words) : null];
    return make("li", {}, make("a", { href: `#case=${place}`, title: oneLine(item.question, 160), "aria-current": place === page.place && "true", class: place === page.place && isOutside && "outside" }, inside));
  };
  at("list").replaceChildren(...places.slice(first, first + LISTED).map(entry));
  at("list").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  at("count").textContent = places.length > LISTED ? `${number(first + 1)} to ${number(Math.min(first + LISTED, places.length))} of ${number(places.length)} cases` : plural(places.length - isOutside, "case");
  if (page.place !== null) at("outside").hidden = !isOutside;
  const done = page.cases.filter((item) => item.decision).length;
  at("bar").max = page.cases.length || 1;
  at("bar").value = done;
  at("progress").textContent = `${number(done)} of ${number(page.cases.length)} ${page.isAudit ? "judged" : "decided"}`;
}

// One case

function withCode(text) {
  return text.split(/`([^`]+)`/).map((part, place) => (place % 2 ? make("code", {}, part) : part));
}

function answerOf(words, { who = "", query = null, others = [], item = null, request, isGold = false, isRight = false, isOpen = true }) {
  return { words, who, query, others, item, request, isGold, isRight, isOpen, result: null, element: make("section", { class: "answer" }) };
}

// What stands on the page for a case: golds first, then the answers of systems, then those of the reviewer.
function answersOf(details, decision) {
  const golds = details.golds.map((query, gold) => answerOf(details.golds.length > 1 ? `Gold ${gold + 1}` : "Gold", { who: gold || !details.agreeing.length ? "" : `also of ${plural(details.agreeing.length, "system")}: ${details.agreeing.join(", ")}`, query, request: { gold }, isGold: true }));
  const others = details.answers.map(({ systems: names, query, queries, item, request }, place) =>
    answerOf(page.isAudit ? "Answer" : plural(names.length, "system"), { who: names.join(", "), query, others: queries, item, request, isOpen: place < OPEN_ANSWERS }),
  );
  for (const item of decision?.answers ?? []) {
    const equalAnswer = others.find((answer) => JSON.stringify(answer.item) === JSON.stringify(item));
    if (equalAnswer) equalAnswer.isRight = equalAnswer.isOpen = true;
    else others.push(answerOf("Your answer", { query: item.query ?? null, item, request: { item }, isRight: true }));
  }
  return [...golds, ...others];
}

function markable() {
  return page.isAudit ? [] : page.answers.filter((answer) => !answer.isGold && answer.item);
}

function isQueried() {
  return page.shown.kind === "sql" || page.shown.kind === "sparql";
}

function queryPane(answer) {
  const kind = page.shown.kind;
  if (answer.query === null) return make("p", { class: "quiet" }, answer.isGold || answer.request ? "a stored answer, no query" : "no query: the system abstained");
  const query = tokens(withoutMargins(answer.query), kind);
  const gold = page.answers.find(({ isGold }) => isGold)?.query;
  if (!answer.isGold && gold) markDifferences(tokens(withoutMargins(gold), kind), query);
  return coloured((isQueried() ? laidOut(query, kind) : jsonLines(answer.query)) ?? query, "mark");
}

function answerPane(answer) {
  if (!answer.request) return null;
  if (!answer.result) return make("p", { class: "quiet" }, "running …");
  if (answer.result instanceof Error) return make("p", { class: "fault" }, answer.result.message);
  const { predicted, difference, message, outcome } = answer.result;
  if (!predicted) return outcome === "error" ? make("p", { class: "fault" }, message) : make("p", { class: "quiet" }, "not run");
  if (predicted.error) return failure(predicted.error);
  if (!predicted.columns) return null;
  const { extra = [], changed = [] } = exact(answer.isGold ? {} : (difference ?? {}));
  const marks = { word: "only", tag: "mark", lone: extra, changed: changed.map(({ gold, predicted: row }) => [row, gold]), caption: `Answer: ${answer.words}` };
  const terms = page.shown.kind === "sparql" ? new Terms(...page.answers.map(({ query }) => query)) : undefined;
  const sample = exact(predicted.sample ?? []);
  return [make("p", { class: "quiet shape" }, predicted.shape), sample.length ? sampleTable(predicted.columns, sample, marks, terms) : null, predicted.more ? make("p", { class: "quiet more" }, predicted.more) : null];
}

// How an answer differs from gold's, in a line and in rows.
function comparison(answer) {
  const { result } = answer;
  if (answer.isGold || !page.answers[0].isGold || !result || result instanceof Error || result.predicted?.error) return [null, null];
  if (result.outcome === "passed") return ["gives the gold answer", null];
  const words = result.difference?.summary ?? result.why ?? "";
  const difference = exact(result.difference ?? {});
  const rows = page.shown.kind === "json" ? pathTable(difference) : page.shown.kind === "sdmx" ? selections(difference) : differenceTable(difference, result.gold?.columns);
  return [words, rows && isQueried() ? make("details", { class: "others" }, make("summary", {}, "Rows that differ from the gold answer"), rows) : rows];
}

function showAnswer(answer) {
  const digit = markable().indexOf(answer) + 1;
  const [words, rows] = comparison(answer);
  const id = `answer-${page.answers.indexOf(answer)}`;
  const title = make("h3", { id }, answer.words);
  let mark = null;
  if (digit) {
    const box = make("input", { type: "checkbox", "aria-describedby": id });
    box.checked = answer.isRight;
    box.addEventListener("change", () => markRight(answer, box.checked));
    mark = make("label", { class: "mark" }, digit <= DIGITS ? make("kbd", {}, String(digit)) : null, " ", box, " right");
  }
  const folded = make("details", {}, make("summary", {}, words || (isQueried() ? "Query and answer" : "Answer")));
  folded.open = answer.isOpen;
  folded.addEventListener("toggle", () => {
    answer.isOpen = folded.open;
    scrollToDifferences(folded);
  });
  const others = answer.others.length
    ? make("details", { class: "others" }, make("summary", {}, `${number(answer.others.length)} other ${answer.others.length === 1 ? "query" : "queries"} with this answer`), answer.others.map((query) => coloured(tokens(withoutMargins(query), page.shown.kind), "mark")))
    : null;
  folded.append(make("div", { class: "body" }, make("div", { class: "sides" }, make("div", {}, queryPane(answer), others), make("div", {}, answerPane(answer), rows))));
  const focused = answer.element.contains(document.activeElement) && document.activeElement.matches("input[type=checkbox]");
  answer.element.classList.toggle("is-right", answer.isRight);
  answer.element.setAttribute("aria-labelledby", id);
  answer.element.replaceChildren(make("header", {}, title, answer.who ? make("span", { class: "who" }, answer.who) : null, mark), folded);
  if (focused) answer.element.querySelector("input")?.focus();
  scrollToDifferences(folded);
}

// In a long query or answer the first difference is in sight.
function scrollToDifferences(within) {
  for (const box of within.querySelectorAll("pre, .scroll")) {
    const below = (box.querySelector("mark, tr.only")?.getBoundingClientRect().bottom ?? 0) - box.getBoundingClientRect().bottom;
    if (below > 0) box.scrollTop += below + 60;
  }
}

function markRight(answer, isRight) {
  answer.isRight = isRight;
  answer.element.classList.toggle("is-right", isRight);
  answer.element.querySelector("input").checked = isRight;
  showDecision();
  say(`Answer ${markable().indexOf(answer) + 1} is ${isRight ? "marked right" : "no longer marked"}.`);
}

// Runs the queries of a case one after the other, while that case is shown.
async function runAll(place) {
  for (const answer of page.answers.filter(({ request, result }) => request && !result)) {
    answer.result = await ask(`cases/${place}/answer`, answer.request).catch((error) => error);
    if (place !== page.place) return;
    showAnswer(answer);
  }
}

async function runWritten(field, button) {
  if (!field.value.trim()) return;
  const place = page.place;
  button.disabled = true;
  say("Running …");
  await attempt(async () => {
    const result = await ask(`cases/${place}/answer`, { query: field.value });
    if (place !== page.place) return;
    const answer = answerOf("Your query", { query: field.value, item: result.item, request: { item: result.item } });
    const earlier = page.answers.find(({ words, isRight }) => words === "Your query" && !isRight);
    if (earlier) {
      page.answers.splice(page.answers.indexOf(earlier), 1);
      earlier.element.remove();
    }
    answer.result = result;
    if (result.predicted?.error) answer.item = null; // what fails cannot be right
    page.answers.push(answer);
    at("written").append(answer.element);
    showAnswer(answer);
    const digit = markable().indexOf(answer) + 1;
    const words = result.predicted?.error?.message ?? comparison(answer)[0] ?? result.predicted?.shape ?? "";
    say(digit ? `${words}. To mark it as right: leave the box by Escape, then press ${digit}.` : words, Boolean(result.predicted?.error));
  });
  button.disabled = false;
}

function queryBox() {
  const what = isQueried() ? "query" : "answer";
  const field = make("textarea", { id: "query", "aria-label": `Your ${what}`, "aria-keyshortcuts": "q", spellcheck: "false", placeholder: `Write ${isQueried() ? "a" : "an"} ${what} to see ${isQueried() ? "its answer" : "how it differs"} (press q; Ctrl+Enter runs it)` });
  const button = make("button", { type: "button" }, "Run");
  button.addEventListener("click", () => runWritten(field, button));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) runWritten(field, button);
  });
  return make("section", { class: "write", "aria-label": `Your ${what}` }, make("div", { id: "written" }), field, make("div", { class: "beside" }, button, make("span", { class: "quiet" }, make("kbd", {}, "Ctrl"), " + ", make("kbd", {}, "Enter"), " runs it, ", make("kbd", {}, "Esc"), " leaves the box")));
}

function schemaOf({ schema, kind }) {
  if (!schema) return null;
  const folded = make("details", { class: "schema" }, make("summary", { "aria-keyshortcuts": "s" }, make("kbd", {}, "s"), " Schema"), coloured(tokens(schema, kind), "mark"));
  folded.open = remembered("schema") === "open"; // at first closed: gold and the answers to compare come in sight
  folded.addEventListener("toggle", () => remembered("schema", folded.open ? "open" : "closed"));
  return folded;
}

// What all reviewers decided is shown to whoever settles a conflict, and to nobody else.
function conflictOf({ conflict }) {
  if (!conflict) return null;
  const folded = make("details", { class: "conflict" }, make("summary", { "aria-keyshortcuts": "c" }, make("kbd", {}, "c"), " Reviewers disagree on this case: settle it"));
  folded.addEventListener("toggle", async () => {
    const isShown = !folded.open || folded.querySelector("ul") || (await attempt(() => showConflict(folded)));
    if (!isShown) folded.open = false;
    showDecision();
  });
  return folded;
}

async function showConflict(folded) {
  const place = page.place;
  const { decisions } = await ask(`cases/${place}/decisions`);
  if (place !== page.place) return;
  if (!decisions.length) {
    page.cases[place].conflict = false;
    folded.remove();
    return say("The conflict was settled meanwhile.");
  }
  const placeOf = (item) => markable().findIndex((answer) => JSON.stringify(answer.item) === JSON.stringify(item));
  for (const { reviewer, answers = [] } of decisions) {
    for (const item of answers.filter((item) => placeOf(item) < 0)) {
      const answer = answerOf("Another answer", { who: `of ${reviewer}`, query: item.query ?? null, item, request: { item } });
      page.answers.push(answer);
      at("written").append(answer.element);
      showAnswer(answer);
    }
  }
  const entries = decisions.map(({ reviewer, decision, answers = [], note }) => {
    const digits = answers.map((item) => placeOf(item) + 1).join(", ");
    return make("li", {}, make("strong", {}, reviewer), ": ", chip(decision), digits ? `, right: ${digits}` : "", note ? `, “${note}”` : "");
  });
  const words = "As long as this is open, your decision settles the case: earlier decisions no longer count.";
  folded.append(make("ul", {}, entries), make("p", {}, words));
  runAll(place);
}

// Only once the decisions that it would overrule are in sight.
function settles() {
  return Boolean(document.querySelector(".conflict[open] li"));
}

async function showPlace(place) {
  page.wanted = place;
  const details = await ask(`cases/${place}`);
  if (page.wanted !== place) return;
  const item = page.cases[place];
  Object.assign(page, { place, shown: details });
  page.answers = answersOf(details, item.decision);
  const title = make("h2", { id: "title", tabindex: -1 }, oneLine(details.id, 200));
  at("case").replaceChildren(
    ...content([
      make("header", {}, title, make("span", {}, `${number(place + 1)} of ${number(page.cases.length)}`), details.source ? make("span", {}, details.source) : null, item.decision ? chip(item.decision.decision) : null),
      make("p", { id: "outside", class: "fault", hidden: true }, "This case does not match the search and the filters."),
      make("p", { class: "question" }, details.question),
      details.evidence ? make("p", { class: "evidence" }, make("span", { class: "quiet" }, "Evidence: "), details.evidence) : null,
      conversation(details.conversation),
      item.stale ? make("p", { class: "fault" }, `You decided “${item.stale}”, but the question or gold has changed since: decide again.`) : null,
      conflictOf(item),
      details.reasons?.length ? make("ul", { class: "reasons", "aria-label": "Why this gold is looked at" }, details.reasons.map((text) => make("li", {}, withCode(text)))) : null,
      details.problem ? make("p", { class: "fault" }, details.problem) : null,
      schemaOf(details),
      details.golds.length || page.isAudit ? null : make("p", { class: "evidence" }, make("span", { class: "quiet" }, "Gold: "), "the question has no answer"),
      page.answers.map(({ element }) => element),
      page.isAudit ? null : queryBox(),
    ]),
  );
  page.answers.forEach(showAnswer);
  at("note").value = item.decision?.note ?? "";
  showList();
  showDecision();
  scrollTo(0, 0);
  title.focus({ preventScroll: true });
  runAll(place);
}

// Deciding

function showDecision() {
  const { decision } = page.cases[page.place] ?? {};
  const numbers = markable().flatMap(({ isRight }, place) => (isRight ? [place + 1] : []));
  at("marked").textContent = [numbers.length ? `Marked right: ${numbers.join(", ")}` : "", settles() ? "Your decision settles the case" : ""].filter(Boolean).join(". ");
  for (const button of at("choices").children) button.setAttribute("aria-pressed", String(button.name === decision?.decision));
  at("undo").disabled = !page.decided.length;
}

async function decide(name) {
  const place = page.place;
  const before = page.cases[place].decision;
  const decision = page.isAudit ? { decision: name } : { decision: name, note: at("note").value.trim() };
  if (!page.isAudit) decision.answers = markable().filter(({ isRight }) => isRight).map(({ item }) => item);
  if (before?.compare) decision.compare = before.compare;
  const isSettled = settles();
  if (!(await append(place, decision, isSettled))) return;
  page.decided.push([place, before, isSettled]);
  const words = `${page.cases[place].id}: ${name}${decision.answers?.length ? `, ${plural(decision.answers.length, "right answer")}` : name === "wrong" && !page.isAudit ? ", no right answer is known" : ""}${isSettled ? ", settled" : ""}.`;
  const next = nextPlace(place);
  if (next === null) {
    showList();
    showDecision();
    say(`${words} No other case is to be decided here.`);
  } else if (await attempt(() => open(next))) say(words);
}

// The next case of the list that is to be decided, from this one on and then from the first; null where there is none.
function nextPlace(place) {
  const places = listed();
  const inTurn = [...places.filter((later) => later > place), ...places.filter((earlier) => earlier < place)];
  const isOpen = ({ decision, conflict }) => (at("show").value === "conflict" ? conflict : !decision);
  return inTurn.find((candidate) => isOpen(page.cases[candidate])) ?? null;
}

function append(place, decision, settles = false) {
  return attempt(async () => {
    await ask(`cases/${place}/decision`, { ...decision, settles, reviewer: page.reviewer });
    Object.assign(page.cases[place], { decision, stale: null }, settles && { conflict: false });
  });
}

// One more line: the decision that stood before; without one, that this reviewer is not sure.
async function undo() {
  if (!page.decided.length) return say("Nothing to undo: you have decided nothing since the page was loaded.");
  const [place, before, isSettled] = page.decided.at(-1);
  if (isSettled) {
    page.decided.pop(); // earlier decisions of others would not count again
    if (await attempt(() => open(place))) say(`${page.cases[place].id} is settled, which is not undone: decide again.`);
    return;
  }
  const unsure = page.choices.at(-1).name;
  // What was marked and noted stays on the page.
  if (!(await append(place, before ?? { ...page.cases[place].decision, decision: unsure }))) return;
  page.decided.pop();
  if (await attempt(() => open(place))) say(`Undone: ${page.cases[place].id} is ${before ? `${before.decision} again` : `${unsure} now${page.isAudit ? "" : ", which has no effect"}`}.`);
}

// Moving and keys

function open(place) {
  if (location.hash !== `#case=${place}`) history.replaceState(null, "", `#case=${place}`);
  return showPlace(place);
}

function move(step) {
  const places = listed();
  const next = places[places.indexOf(page.wanted) + step];
  if (next !== undefined) attempt(() => open(next));
}

function toggle(selector) {
  const folded = document.querySelector(selector);
  if (folded) folded.open = !folded.open;
}

const KEYS = [
  ["j", "next case", () => move(1)],
  ["k", "previous case", () => move(-1)],
  ["g", "go to the next answer", () => visitAnswer()],
  ["n", "write a note", () => page.isAudit || at("note").focus()],
  ["q", "write a query", () => at("query")?.focus()],
  ["o", "open or fold all answers", () => unfold()],
  ["s", "show or hide the schema", () => toggle(".schema")],
  ["c", "show the decisions of reviewers who disagree, to settle the conflict", () => toggle(".conflict")],
  ["z", "undo the last decision", undo],
  ["/", "search the cases", () => at("search").focus()],
  ["?", "this list", () => at("keys").showModal()],
];

// Goes to the answer behind the one that was visited last, and after the last one to the first.
function visitAnswer() {
  const elements = [...document.querySelectorAll(".answer")];
  const next = elements[(elements.findIndex((element) => element.contains(document.activeElement)) + 1) % elements.length];
  if (!next) return;
  next.scrollIntoView({ block: "start" });
  (next.querySelector("input") ?? next.querySelector("summary")).focus({ preventScroll: true });
}

function unfold() {
  const isOpen = page.answers.some((answer) => !answer.isOpen);
  for (const answer of page.answers) answer.element.querySelector("details").open = isOpen;
}

function pressed(event) {
  const inField = event.target.matches("input:not([type=checkbox]), textarea, select");
  if (event.key === "Escape" && inField) return at("title")?.focus();
  if (inField || event.ctrlKey || event.altKey || event.metaKey || document.querySelector("dialog[open]") || !at("use-keys").checked || !page.shown) return;
  const choice = page.choices.find(({ key }) => key === event.key);
  const [, , act] = KEYS.find(([key]) => key === event.key) ?? [];
  const answer = /^[1-9]$/.test(event.key) && markable()[Number(event.key) - 1];
  if (!choice && !act && !answer) return;
  event.preventDefault();
  if (choice && !event.repeat) decideOnce(choice.name);
  else if (act) act();
  else {
    markRight(answer, !answer.isRight);
    answer.element.scrollIntoView({ block: "nearest" });
  }
}

// One decision at a time: a second key before the first is written would meet the case before or after.
let isDeciding = false;
async function decideOnce(name) {
  if (isDeciding) return;
  isDeciding = true;
  await decide(name).finally(() => (isDeciding = false));
}

async function nameReviewer() {
  const dialog = at("name");
  at("name-field").value = page.reviewer || remembered("name") || document.body.dataset.reviewer;
  dialog.showModal();
  at("name-field").select();
  dialog.returnValue = "";
  await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
  const name = dialog.returnValue && at("name-field").value.trim();
  if (!name) return page.reviewer || nameReviewer();
  remembered("name", name);
  return name;
}

async function load(reviewer) {
  const { choices, cases, audit } = await ask(`cases?reviewer=${encoded(reviewer)}`);
  Object.assign(page, { reviewer, choices, cases, isAudit: Boolean(audit), decided: [] });
  at("reviewer").textContent = shown(reviewer);
  at("note").hidden = page.isAudit;
  at("show").options[3].textContent = choices.at(-1).words;
  at("choices").replaceChildren(
    ...choices.map(({ name, key, words, hint }) => {
      const button = make("button", { type: "button", name, title: hint, "aria-keyshortcuts": key, "aria-pressed": "false" }, make("kbd", {}, key), words);
      button.addEventListener("click", () => decideOnce(name));
      return button;
    }),
  );
  at("show").querySelector("[value=conflict]").hidden = !cases.some(({ conflict }) => conflict);
  const reasons = [...new Set(cases.flatMap((item) => item.reasons ?? []))];
  at("reason").replaceChildren(make("option", { value: "" }, "Any reason"), ...reasons.map((reason) => make("option", { value: reason }, reason)));
  at("reason").hidden = !reasons.length;
  const entries = [...choices.map(({ key, words, hint }) => [key, hint]), ...(audit ? [] : [["1 … 9", "mark an answer as right, or take the mark back"]]), ...KEYS.filter(([key]) => !audit || !"gqnoc".includes(key))];
  at("key-list").replaceChildren(...entries.map(([key, words]) => make("div", {}, make("dt", {}, make("kbd", {}, key)), make("dd", {}, words))));
  const wanted = Number(stateOf(location.hash).get("case"));
  const first = Math.max(0, cases.findIndex((item) => !item.decision));
  page.place = null;
  if (cases.length) await open(location.hash.includes("case=") && wanted in cases ? wanted : first);
}

async function start() {
  themes();
  at("use-keys").checked = remembered("keys") !== "off";
  at("use-keys").addEventListener("change", () => remembered("keys", at("use-keys").checked ? "on" : "off"));
  at("show-keys").addEventListener("click", () => at("keys").showModal());
  at("undo").addEventListener("click", undo);
  at("reviewer").addEventListener("click", async () => {
    const name = await nameReviewer();
    if (name !== page.reviewer) attempt(() => load(name));
  });
  for (const id of ["show", "reason", "search"]) at(id).addEventListener("input", showList);
  for (const id of ["filters", "decision"]) at(id).addEventListener("submit", (event) => event.preventDefault());
  at("filters").addEventListener("submit", openFirstMatch);
  at("decision").addEventListener("submit", () => at("title")?.focus()); // Enter in the note
  addEventListener("keydown", pressed);
  addEventListener("hashchange", () => {
    const place = Number(stateOf(location.hash).get("case"));
    if (place in page.cases && place !== page.place) attempt(() => showPlace(place));
  });
  const name = remembered("name") || (await nameReviewer());
  await attempt(() => load(name));
  performance.mark("queryeval-ready");
}

start();
