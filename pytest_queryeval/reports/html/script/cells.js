// Answers as tables, and where two of them differ.

function cell(value) {
  if (value === null || value === undefined) return make("td", { class: "null" }, "NULL");
  return make("td", { class: value instanceof Numeral && "number" }, valueText(value));
}

function sameCells(row) {
  return JSON.stringify(row.map(key).sort());
}

// How often each row occurs, in any order of its cells.
function counted(rows) {
  const counts = new Map();
  for (const row of rows) counts.set(sameCells(row), (counts.get(sameCells(row)) ?? 0) + 1);
  return counts;
}

function taken(counts, row) {
  const left = counts.get(sameCells(row)) ?? 0;
  counts.set(sameCells(row), left - 1);
  return left > 0;
}

// The places of the cells that another row does not hold.
function alone(row, other) {
  const left = other.map(key);
  return row.map((value) => {
    const place = left.indexOf(key(value));
    if (place >= 0) left.splice(place, 1);
    return place < 0;
  });
}

// The rows of one side; `lone` are those that the other side lacks, `changed` pairs of its rows and the other's.
function sampleTable(columns, rows, { word, tag, lone, changed, caption }) {
  const left = counted(lone);
  const pairs = new Map(changed.map(([own, other]) => [sameCells(own), other]));
  const body = rows.map((row) => {
    if (taken(left, row)) return make("tr", { class: word }, make("th", { scope: "row" }, word), row.map((value) => cell(value)));
    const other = pairs.get(sameCells(row));
    const marks = other ? alone(row, other) : [];
    const cells = row.map((value, place) => (marks[place] ? marked(value, tag) : cell(value)));
    return make("tr", { class: other && "changed" }, other ? make("th", { scope: "row" }, "changed") : make("td"), cells);
  });
  return scrollable(caption, table(caption, ["", ...columns], body));
}

function marked(value, tag) {
  const plain = cell(value);
  const inside = make(tag);
  inside.append(...plain.childNodes);
  plain.append(inside);
  return plain;
}

function table(caption, columns, body) {
  const head = columns.map((name) => (name === "" ? make("td") : make("th", { scope: "col" }, name)));
  return make("table", {}, make("caption", { class: "unseen" }, caption), make("thead", {}, make("tr", {}, head)), make("tbody", {}, body));
}

function scrollable(label, ...children) {
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": oneLine(label, 80) }, children);
}

// Columns by how wide the rows of a difference are, where the answers are no tables: paths and terms.
const TERMS = { 2: ["path", "value"], 3: ["dimension", "code", "name"] };

function differenceTable(difference, columns) {
  const { missing = [], extra = [], changed = [], repeated = [] } = difference;
  const width = (missing[0] ?? extra[0] ?? changed[0]?.gold ?? repeated[0]?.row ?? []).length;
  if (!width) return null;
  const names = columns?.length === width ? columns : (difference.columns ?? TERMS[width] ?? Array(width).fill(""));
  const line = (word, kind, cells) => make("tr", { class: kind }, make("th", { scope: "row" }, word), cells);
  const body = [
    ...missing.map((row) => line("missing", "missing", row.map((value) => cell(value)))),
    ...extra.map((row) => line("extra", "extra", row.map((value) => cell(value)))),
    ...changed.flatMap(({ gold, predicted }) => [
      line("changed: gold", "changed", changedCells(gold, predicted, "del")),
      line("predicted", "changed", changedCells(predicted, gold, "ins")),
    ]),
    ...repeated.map(({ row, gold, predicted }) => line(`${valueText(gold)} in gold, ${valueText(predicted)} in predicted`, "changed", row.map((value) => cell(value)))),
  ];
  return scrollable("Differences", table("Rows that differ", ["", ...names], body));
}

function changedCells(row, other, tag) {
  return row.map((value, place) => (key(value) === key(other[place]) ? cell(value) : marked(value, tag)));
}
