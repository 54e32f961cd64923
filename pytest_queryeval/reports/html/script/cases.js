// The table of all cases: packed lists, filters, order, pages. Its state is in the fragment of the address.

const ROWS = 100;
const SCORES_SHOWN = 4;
const FAULTS = ["failed", "missed", "error"];
const TEXT_COLUMNS = new Map([["id", "case"], ["outcome", "outcome"], ["kind", "kind"], ["difficulty", "difficulty"], ["tags", "tags"]]);
const PREDICTION = "prediction seconds";
const SCORE = /^score /; // what a metric is sorted by that has the name of another column
const LEVELS = ["easy", "simple", "medium", "moderate", "hard", "challenging", "extra"];

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
    this.frequent = mostFrequent(this.scores);
    this.order = Array.from({ length: this.size }, (_, place) => place);
    this.texts = this.order.map((place) => this.searched(place));
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
    const { question, message, tags } = this.list;
    return [this.nodeid(place), question[place], message[place], ...tags[place]].join("\n").toLowerCase();
  }

  async details(place) {
    const piece = this.pieces.findLast(({ first }) => first <= place);
    piece.cases ??= await unpacked(piece.element);
    return piece.cases[place - piece.first];
  }

  value(name, place) {
    if (name === PREDICTION) return this.list.seconds[place];
    if (TEXT_COLUMNS.has(name)) return this.list[name][place];
    return this.score(this.scores.has(name) ? name : name.replace(SCORE, ""), place);
  }

  score(name, place) {
    return this.scores.get(name)?.[place];
  }

  matching(state) {
    const { q = "", outcome, kind, tag, difficulty } = state;
    const words = q.toLowerCase().split(/\s+/).filter(Boolean);
    const { list } = this;
    const found = this.order.filter(
      (place) =>
        (!outcome || (outcome === "faults" ? FAULTS.includes(list.outcome[place]) : list.outcome[place] === outcome)) &&
        (!kind || list.kind[place] === kind) &&
        (!tag || list.tags[place].includes(tag)) &&
        (!difficulty || list.difficulty[place] === difficulty) &&
        words.every((word) => this.texts[place].includes(word)),
    );
    return state.sort ? this.sorted(found, state.sort, state.order === "desc" ? -1 : 1) : found;
  }

  // In place where values are the same; cases without a value come last in both directions.
  sorted(places, name, sign) {
    const keys = new Map(places.map((place) => [place, sortKey(name, this.value(name, place))]));
    return places.sort((first, second) => {
      const [one, other] = [keys.get(first), keys.get(second)];
      if (one === null || other === null) return (one === null) - (other === null) || first - second;
      return sign * (one < other ? -1 : one > other ? 1 : 0) || first - second;
    });
  }
}

function sortKey(name, value) {
  if (value === null || value === undefined) return null;
  if (name === "difficulty") return `${LEVELS.includes(value) ? LEVELS.indexOf(value) : 9}${value}`;
  if (name === "tags") return value.length ? value.join("\n") : null;
  return value;
}

// The controls above the table; `change` is called with what they set.
function filters(cases, change) {
  const { list } = cases;
  const input = make("input", { type: "search", id: "filter-q", autocomplete: "off", placeholder: "question, id, message" });
  input.addEventListener("input", () => change({ q: input.value.trim() }));
  const outcomes = unique(list.outcome).map((outcome) => [outcome, outcome]);
  if (list.outcome.some((outcome) => FAULTS.includes(outcome))) outcomes.unshift(["faults", "failed, missed or in error"]);
  const selects = [
    choice("outcome", outcomes, change),
    choice("kind", unique(list.kind).map(twice), change),
    choice("difficulty", unique(list.difficulty).sort((one, other) => (sortKey("difficulty", one) < sortKey("difficulty", other) ? -1 : 1)).map(twice), change),
    choice("tag", unique(list.tags.flat()).sort().map(twice), change),
  ];
  const clear = make("button", { type: "button" }, "Clear");
  clear.addEventListener("click", () => change({ q: "", outcome: "", kind: "", difficulty: "", tag: "" }));
  const form = document.getElementById("filters");
  form.append(make("label", { class: "wide" }, make("span", {}, "Search"), input), ...selects.filter(Boolean), clear);
  form.addEventListener("submit", (event) => event.preventDefault());
  return (state) => {
    if (document.activeElement !== input) input.value = state.q ?? "";
    for (const select of form.querySelectorAll("select")) select.value = state[select.name] ?? "";
  };
}

function unique(values) {
  return [...new Set(values)].filter((value) => value !== null && value !== undefined);
}

function twice(value) {
  return [value, value];
}

function choice(name, options, change) {
  if (options.length < 2) return null;
  const select = make("select", { name }, make("option", { value: "" }, "all"));
  for (const [value, words] of options) {
    const option = make("option", {}, oneLine(words, 60));
    option.value = value;
    select.append(option);
  }
  select.addEventListener("change", () => change({ [name]: select.value }));
  return make("label", {}, make("span", {}, name), select);
}

// The few metrics that most cases have a score of, in the order of the report.
function mostFrequent(scores) {
  const counts = new Map([...scores].map(([name, values]) => [name, values.filter((value) => value !== null).length]));
  const largest = new Set([...scores.keys()].sort((one, other) => counts.get(other) - counts.get(one)).slice(0, SCORES_SHOWN));
  return [...scores.keys()].filter((name) => largest.has(name));
}

// Which scores have columns: those that the address names, else the most frequent ones.
function scoreColumns(cases, state) {
  const names = [...cases.scores.keys()];
  if (state.scores === undefined) return cases.frequent;
  const wanted = new Set(state.scores.split(",").map(decoded));
  return names.filter((name) => wanted.has(name));
}

function columnChoice(cases, current, change) {
  const names = [...cases.scores.keys()];
  const fieldset = document.querySelector("#columns fieldset");
  const boxes = names.map((name) => {
    const box = make("input", { type: "checkbox" });
    box.checked = scoreColumns(cases, current()).includes(name);
    box.addEventListener("change", () => {
      const chosen = names.filter((_, place) => boxes[place].box.checked);
      change({ scores: chosen.length ? chosen.map(encoded).join(",") : "," });
    });
    return { box, label: make("label", {}, box, " ", oneLine(name, 80)) };
  });
  fieldset.append(...boxes.map(({ label }) => label));
  document.getElementById("columns").hidden = names.length <= SCORES_SHOWN;
}

// Long names of metrics may be broken after their underscores.
function breakable(text) {
  return text.split(/(?<=_)/).flatMap((part) => [part, make("wbr")]);
}

function headCell(name, words, state, change) {
  const isSorted = state.sort === name;
  const direction = isSorted ? (state.order === "desc" ? "descending" : "ascending") : null;
  const button = make("button", { type: "button", "data-sort": name }, breakable(oneLine(words, 60)), make("span", { class: "arrow", "aria-hidden": "true" }, { ascending: "↑", descending: "↓" }[direction] ?? ""));
  button.addEventListener("click", () => {
    change({ sort: name, order: direction === "ascending" ? "desc" : "" });
    for (const other of document.querySelectorAll("#table thead button")) if (other.dataset.sort === button.dataset.sort) other.focus();
  });
  return make("th", { scope: "col", "aria-sort": direction, class: TEXT_COLUMNS.has(name) ? null : "number" }, button);
}

function caseRow(cases, place, scores, state) {
  const { list } = cases;
  const outcome = list.outcome[place];
  const link = make("a", { href: cases.link(place, state) }, oneLine(list.id[place], 80));
  return make(
    "tr",
    {},
    make("th", { scope: "row" }, link, make("span", { class: "quiet" }, oneLine(list.question[place] || list.path[place], 90))),
    make("td", {}, make("span", { class: `chip ${outcome}` }, outcome)),
    make("td", {}, list.kind[place]),
    make("td", {}, list.difficulty[place] ?? ""),
    make("td", {}, oneLine(list.tags[place].join(", "), 60)),
    scores.map((name) => make("td", { class: "number" }, cases.score(name, place) === null ? "" : score(cases.score(name, place)))),
    make("td", { class: "number" }, seconds(list.seconds[place])),
  );
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

function showTable(cases, state, change) {
  const found = cases.matching(state);
  const page = Math.min(Math.max(1, Number.parseInt(state.page, 10) || 1), Math.max(1, Math.ceil(found.length / ROWS)));
  const scores = scoreColumns(cases, state);
  const head = [...TEXT_COLUMNS, ...scores.map((name) => [TEXT_COLUMNS.has(name) || name === PREDICTION ? `score ${name}` : name, name]), [PREDICTION, "prediction"]].map(([name, words]) => headCell(name, words, state, change));
  const rows = found.slice((page - 1) * ROWS, page * ROWS).map((place) => caseRow(cases, place, scores, state));
  const caption = make("caption", { class: "unseen" }, "Cases. The buttons in the first row sort them.");
  document.getElementById("table").replaceChildren(make("table", {}, caption, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows)));
  const few = found.length === cases.size ? "" : ` of ${number(cases.size)}`;
  document.getElementById("count").textContent = `${number(found.length)}${few} case${found.length === 1 && !few ? "" : "s"}`;
  pager(found.length, page, change);
  return found;
}
