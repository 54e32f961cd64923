// The table of cases: packed lists, filters, order, pages. Its state is in the fragment of the address.

const ROWS = 100;
const GROUP_ROWS = 5; // of the cases of one cause, where they are grouped
const SCORES_SHOWN = 4;
const SYSTEMS_SHOWN = 5;
const WIDEST = 5; // columns of scores beside texts
const FAULTS = ["failed", "missed", "error"];
const SHORTEST = 0.001; // seconds; if all predictions took less, as from a file, the page does not show the times
const PREDICTION = "prediction seconds";
const TEXT_COLUMNS = new Map([["question", "Question"], ["id", "Case"], ["why", "What is wrong"]]);
const SCORE = /^score /; // prefix of the sort key of a metric that is named like another column

async function unpacked(element) {
  const bytes = Uint8Array.from(atob(element.textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

class Cases {
  constructor(list) {
    this.list = list;
    this.size = list.id.length;
    this.scores = new Map(Object.entries(list.scores));
    this.groups = Object.entries(list.groups);
    this.hasKinds = unique(list.kind).length > 1;
    this.isTimed = list.seconds.some((taken) => taken >= SHORTEST);
    this.order = [...new Set([...list.worst, ...list.id.keys()])];
    this.texts = list.id.map((_, place) => this.searched(place));
    this.earlier = new Map(Object.entries(list.earlier));
    this.causes = new Map(Object.entries(list.causes));
    this.views = new Map(Object.entries(list.views).map(([name, places]) => [name, new Set(places)]));
    this.first = document.querySelector("#filters [aria-current]").dataset.show;
    this.pieces = Array.from(document.querySelectorAll("script.packed"), (element) => ({ element, first: Number(element.dataset.first) }));
    this.places = new Map();
    for (let place = this.size - 1; place >= 0; place -= 1) this.places.set(this.nodeid(place), place);
  }

  nodeid(place) {
    return wellFormed(this.list.nodeid[place] ?? `${this.list.path[place]}::${this.list.id[place]}`);
  }

  // The case of a node id; `at` tells those apart that have the same one.
  place(nodeid, at) {
    return at !== undefined && this.nodeid(Number(at)) === nodeid ? Number(at) : this.places.get(nodeid);
  }

  link(place, state) {
    const nodeid = this.nodeid(place);
    return fragment({ ...state, case: nodeid, at: this.places.get(nodeid) === place ? null : place });
  }

  searched(place) {
    const { question, message, why, review, tags } = this.list;
    return [this.nodeid(place), question[place], message[place], why[place], review[place], ...tags[place]].join("\n").toLowerCase();
  }

  async details(place) {
    const piece = this.pieces.findLast(({ first }) => first <= place);
    piece.cases ??= await unpacked(piece.element);
    return piece.cases[place - piece.first];
  }

  value(name, place) {
    if (name === PREDICTION) return this.list.seconds[place];
    if (TEXT_COLUMNS.has(name)) return this.list[name][place] || null;
    return this.score(this.scores.has(name) ? name : name.replace(SCORE, ""), place);
  }

  score(name, place) {
    return this.scores.get(name)?.[place];
  }

  // The score that the baseline had, where it is another one.
  before(name, place) {
    const scores = this.earlier.get(String(place)) ?? {};
    return Object.hasOwn(scores, name) ? scores[name] : undefined;
  }

  // The cause of a wrong answer; without one, how the case ended.
  reason(place) {
    const outcome = this.list.outcome[place];
    return this.list.labels[place][0] ?? (outcome === "missed" ? "failed" : outcome);
  }

  // The places of each reason: with a baseline in its order, which begins with what increased most; the others by number.
  byReason(places) {
    const ranks = new Map([...this.causes.keys()].map((reason, rank) => [reason, rank - this.causes.size]));
    const rank = (reason) => ranks.get(reason) ?? 0;
    return [...Map.groupBy(places, (place) => this.reason(place))].sort(
      ([one, { length }], [other, others]) => rank(one) - rank(other) || others.length - length,
    );
  }

  shows(view, place) {
    const outcome = this.list.outcome[place];
    if (view === "all") return true;
    if (view === "faults") return FAULTS.includes(outcome);
    return this.views.get(view)?.has(place) ?? outcome === view;
  }

  matching(state) {
    const { q = "", show = this.first, label } = state;
    const chosen = this.groups.filter(([name]) => state[name]).map(([name, { values, members }]) => [members, values.indexOf(state[name])]);
    const { list } = this;
    const words = q.toLowerCase().split(/\s+/).filter(Boolean);
    const found = this.order.filter(
      (place) =>
        this.shows(show, place) &&
        chosen.every(([members, value]) => members[place].includes(value)) &&
        (!label || list.labels[place].includes(label) || this.reason(place) === label) &&
        words.every((word) => this.texts[place].includes(word)),
    );
    return state.sort ? this.sorted(found, state.sort, state.order === "desc" ? -1 : 1) : found;
  }

  // In the order of the report where values are the same; cases without a value come last in both directions.
  sorted(places, name, sign) {
    const keys = new Map(places.map((place) => [place, this.value(name, place) ?? null]));
    return places.sort((first, second) => {
      const [one, other] = [keys.get(first), keys.get(second)];
      if (one === null || other === null) return (one === null) - (other === null) || first - second;
      return sign * (one < other ? -1 : one > other ? 1 : 0) || first - second;
    });
  }
}

// The controls above the table; `change` is called with what they set.
function filters(cases, change) {
  const { list } = cases;
  const links = document.querySelectorAll("#filters [data-show]");
  for (const link of links) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      change({ show: link.dataset.show });
    });
  }
  const input = document.getElementById("filter-q");
  input.addEventListener("input", () => change({ q: input.value.trim() }));
  addEventListener("keydown", (event) => {
    const isTyping = event.ctrlKey || event.altKey || event.metaKey || event.target.matches("input, select, textarea");
    if (event.key !== "/" || isTyping || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    input.focus();
  });
  const labels = unique(list.labels.flat()).sort();
  const reasons = list.labels.some((_, place) => cases.reason(place) === "failed") ? [...labels, "failed"] : labels;
  const selects = [
    ...cases.groups.map(([name, { plural, values }]) => choice(name, plural, values, change)),
    choice("label", "causes", reasons, change, reasonWords),
  ].filter(Boolean);
  document.getElementById("choices").append(...selects);
  const button = document.getElementById("by-cause");
  button.hidden = reasons.length < 2;
  button.addEventListener("click", () => change(button.ariaPressed === "true" ? { by: "" } : { by: "cause", label: "" }));
  input.form.addEventListener("submit", (event) => event.preventDefault());
  return (state) => {
    if (document.activeElement !== input) input.value = state.q ?? "";
    for (const select of selects) select.value = state[select.name] ?? "";
    button.ariaPressed = String(state.by === "cause");
    for (const link of links) link.setAttribute("aria-current", link.dataset.show === (state.show ?? cases.first));
  };
}

function unique(values) {
  return [...new Set(values)].filter((value) => value !== null && value !== undefined);
}

function reasonWords(reason) {
  return reason === "failed" ? "no cause found" : oneLine(reason.replaceAll("-", " "), 60);
}

function choice(name, several, values, change, words = (value) => oneLine(value, 60)) {
  if (values.length < 2) return null;
  const select = make("select", { name, "aria-label": name }, make("option", { value: "" }, `all ${several}`));
  for (const value of values) {
    const option = make("option", {}, words(value));
    option.value = value;
    select.append(option);
  }
  select.addEventListener("change", () => change({ [name]: select.value }));
  return select;
}

// The scores that have columns: those that the address names, else those that changed or tell the rows apart, else the
// first; in a comparison of systems those of the first ones.
function scoreColumns(cases, state, rows) {
  const known = [...cases.scores].map(([name, values]) => [name, unique(rows.map((place) => values[place]))]);
  const scored = known.filter(([, values]) => values.length);
  if (state.scores !== undefined) {
    const wanted = new Set(state.scores.split(",").map(decoded));
    return known.map(([name]) => name).filter((name) => wanted.has(name));
  }
  if (cases.list.systems) return cases.list.systems.slice(0, SYSTEMS_SHOWN);
  const telling = scored.filter(([name, values]) => values.length > 1 || rows.some((place) => cases.before(name, place) !== undefined));
  const names = (telling.length ? telling : scored).map(([name]) => name).slice(0, SCORES_SHOWN);
  const sorted = state.sort?.replace(SCORE, "");
  return names.includes(sorted) || !scored.some(([name]) => name === sorted) ? names : [sorted, ...names.slice(1)];
}

function columnChoice(cases, change) {
  const names = [...cases.scores.keys()];
  const details = document.getElementById("columns");
  const boxes = names.map((name) => {
    const box = make("input", { type: "checkbox" });
    box.addEventListener("change", () => {
      const chosen = names.filter((_, place) => boxes[place].box.checked);
      change({ scores: chosen.length ? chosen.map(encoded).join(",") : "," });
    });
    return { box, label: make("label", {}, box, " ", oneLine(name, 80)) };
  });
  details.querySelector("fieldset").append(...boxes.map(({ label }) => label));
  details.hidden = !names.length;
  return (shown) => boxes.forEach(({ box }, place) => (box.checked = shown.includes(names[place])));
}

// Long names of metrics may be broken after their underscores.
function breakable(text) {
  return text.split(/(?<=_)/).flatMap((part) => [part, make("wbr")]);
}

// The head of a column, with a button for each of the values that sort it.
function headCell(names, state, change, kind) {
  const direction = names.some(([name]) => state.sort === name) ? (state.order === "desc" ? "descending" : "ascending") : null;
  return make("th", { scope: "col", "aria-sort": direction, class: kind }, names.map(([name, words]) => sortButton(name, words, state.sort === name ? direction : null, change)));
}

function sortButton(name, words, direction, change) {
  const button = make("button", { type: "button", "data-sort": name, "aria-pressed": direction ? "true" : null }, breakable(oneLine(words, 60)), make("span", { class: "arrow", "aria-hidden": "true" }, { ascending: "↑", descending: "↓" }[direction] ?? ""));
  button.addEventListener("click", () => {
    change({ sort: name, order: direction === "ascending" ? "desc" : "" });
    for (const other of document.querySelectorAll("#table thead button")) if (other.dataset.sort === button.dataset.sort) other.focus();
  });
  return button;
}

function caseRow(cases, place, scores, state, isWrong, isTimed) {
  const { list } = cases;
  const outcome = list.outcome[place];
  const id = oneLine(list.id[place], 300);
  const question = oneLine(list.question[place], 300);
  const link = make("a", { href: cases.link(place, state), class: question ? "clamped" : "clamped id" }, question || id);
  const about = [cases.hasKinds && list.kind[place], list.difficulty[place], list.trials[place]].filter(Boolean).map((text) => oneLine(text, 40)).join(" · ");
  const labels = list.labels[place].map((label) => make("span", { class: `chip ${outcome}` }, reasonWords(label)));
  const [clause, before, after] = list.change[place] ?? [];
  const change = list.change[place] && make("code", {}, [clause, before && make("del", {}, before), after && make("ins", {}, after)].filter(Boolean).flatMap((part) => [part, " "]));
  const row = make(
    "tr",
    {},
    make("th", { scope: "row", class: "words" }, link, make("span", { class: "sub" }, make("span", { class: `chip ${outcome}` }, outcome), question && make("span", { class: "id" }, id), about)),
    isWrong && make("td", { class: "words" }, (labels.length || change) && make("span", { class: "cause" }, labels, change), make("span", { class: "clamped" }, oneLine(list.why[place], 300)), list.review[place] && make("span", { class: "clamped review" }, make("span", { class: "quiet" }, "Review: "), oneLine(list.review[place], 300))),
    scores.map((name) => make("td", { class: "number", "data-name": oneLine(name, 60) }, scoreChange(cases.before(name, place), cases.score(name, place)))),
    isTimed && make("td", { class: "number", "data-name": "prediction" }, seconds(list.seconds[place])),
  );
  row.addEventListener("click", (event) => {
    if (!event.target.closest("a") && !getSelection().toString()) link.click();
  });
  return row;
}

function scoreChange(before, value) {
  if (before !== undefined) return [make("span", { class: "quiet" }, `${score(before)} → `), score(value)];
  return value === null ? "" : score(value);
}

// The first cases of a reason below its name.
function groupRows([reason, places], cases, state, columns, row) {
  const [before, after] = cases.causes.get(reason) ?? [];
  const all = make("a", { href: fragment({ ...state, by: "", label: reason }) }, places.length === 1 ? "1 case" : `all ${number(places.length)} cases`);
  const name = make("th", { scope: "rowgroup", colspan: columns }, make("strong", {}, reasonWords(reason)), " ", before === undefined ? null : make("span", { class: "quiet" }, `${number(before)} → ${number(after)}`), " ", all);
  return make("tbody", {}, make("tr", { class: "group" }, name), places.slice(0, GROUP_ROWS).map(row));
}

function pager(found, page, change) {
  const pages = Math.max(1, Math.ceil(found / ROWS));
  const nav = document.querySelector("nav.pager");
  const focused = nav.contains(document.activeElement) ? document.activeElement.textContent : null;
  const step = (words, target) => {
    const button = make("button", { type: "button", disabled: target < 1 || target > pages }, words);
    button.addEventListener("click", () => change({ page: target > 1 ? target : "" }));
    return button;
  };
  nav.replaceChildren(step("Previous", page - 1), make("span", {}, `page ${number(page)} of ${number(pages)}`), step("Next", page + 1));
  nav.hidden = pages < 2;
  for (const button of nav.querySelectorAll("button:enabled")) if (focused === button.textContent) button.focus();
}

// The rows of a page in a table, or the first ones of each reason; `check` ticks the boxes of the scores that have columns.
function showTable(cases, state, change, check) {
  const matching = cases.matching(state);
  const groups = state.by === "cause" ? cases.byReason(matching) : null;
  const found = groups ? groups.flatMap(([, places]) => places) : matching;
  const page = Math.min(Math.max(1, Number.parseInt(state.page, 10) || 1), Math.max(1, Math.ceil(found.length / ROWS)));
  const rows = groups ? groups.flatMap(([, places]) => places.slice(0, GROUP_ROWS)) : found.slice((page - 1) * ROWS, page * ROWS);
  const scores = scoreColumns(cases, state, rows);
  check(scores);
  const isWrong = rows.some((place) => cases.list.why[place] || cases.list.labels[place].length || cases.list.review[place]);
  const isTimed = cases.isTimed && rows.some((place) => cases.value(PREDICTION, place) !== null);
  const head = [
    headCell([...TEXT_COLUMNS].filter(([name]) => name !== "why"), state, change, "words"),
    isWrong && headCell([...TEXT_COLUMNS].filter(([name]) => name === "why"), state, change, "words"),
    ...scores.map((name) => headCell([[TEXT_COLUMNS.has(name) || name === PREDICTION ? `score ${name}` : name, name]], state, change, "number")),
    isTimed && headCell([[PREDICTION, "Prediction"]], state, change, "number"),
  ].filter(Boolean);
  const caption = make("caption", { class: "unseen" }, "Cases. The buttons in the first row sort them.");
  const row = (place) => caseRow(cases, place, scores, state, isWrong, isTimed);
  const bodies = groups ? groups.map((group) => groupRows(group, cases, state, head.flat().length, row)) : make("tbody", {}, rows.map(row));
  const shownRows = rows.length ? make("table", { class: scores.length > WIDEST && "folded" }, caption, make("thead", {}, make("tr", {}, head)), bodies) : make("p", { class: "nothing" }, cases.size ? "No case fits." : "There are no cases.");
  document.getElementById("table").replaceChildren(shownRows);
  const few = found.length === cases.size ? "" : ` of ${number(cases.size)}`;
  document.getElementById("count").textContent = `${number(found.length)}${few} case${found.length === 1 && !few ? "" : "s"}`;
  pager(groups ? 0 : found.length, page, change);
  return found;
}
