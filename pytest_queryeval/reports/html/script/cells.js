// Answers as tables, and where two of them differ.

const WIDE = 16; // columns, beyond which a table of differences has those with differences first

function cell(value, terms, isAmongNumbers = false) {
  if (value === null || value === undefined) return make("td", { class: isAmongNumbers ? "null number" : "null" }, "NULL");
  if (value === "") return make("td", { class: "empty", title: "a text without characters" });
  return make("td", { class: isNumber(value, terms) && "number" }, value instanceof Numeral ? value.text : (terms?.shown(value) ?? valueText(value)));
}

function isNumber(value, terms) {
  return value instanceof Numeral || Boolean(terms?.isNumber(value));
}

// A cell whose value the other side does not have.
function marked(value, tag, ...how) {
  const plain = cell(value, ...how);
  const inside = make(tag);
  inside.append(...plain.childNodes);
  plain.append(inside);
  return plain;
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
function sampleTable(columns, rows, { word, tag, lone, changed, caption }, terms) {
  const left = counted(lone);
  const pairs = new Map(changed.map(([own, other]) => [sameCells(own), other]));
  const areNumbers = ofNumbers(columns.length, rows, terms);
  const isLabelled = lone.length > 0 || changed.length > 0;
  const body = rows.map((row) => {
    if (taken(left, row)) return make("tr", { class: word }, make("th", { scope: "row" }, word), row.map((value, place) => cell(value, terms, areNumbers[place])));
    const other = pairs.get(sameCells(row));
    const marks = other ? alone(row, other) : [];
    const cells = row.map((value, place) => (marks[place] ? marked(value, tag, terms, areNumbers[place]) : cell(value, terms, areNumbers[place])));
    const label = other ? make("th", { scope: "row" }, "changed") : make("td");
    return make("tr", { class: other && "changed" }, isLabelled ? label : null, cells);
  });
  return scrollable(caption, table(caption, [[isLabelled ? make("td") : null, columnHeads(columns, areNumbers)]], make("tbody", {}, body)));
}

// Which columns hold numbers, next to NULL.
function ofNumbers(width, rows, terms) {
  return Array.from({ length: width }, (_, place) => {
    const values = rows.map((row) => row[place]).filter((value) => value !== null && value !== undefined);
    return values.length > 0 && values.every((value) => isNumber(value, terms));
  });
}

function columnHeads(names, areNumbers) {
  return names.map((name, place) => make("th", { scope: "col", class: areNumbers[place] && "number" }, name));
}

function table(caption, heads, ...bodies) {
  return make("table", {}, make("caption", { class: "unseen" }, caption), make("thead", {}, heads.map((cells) => make("tr", {}, cells.flat()))), bodies);
}

function scrollable(label, ...children) {
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": oneLine(label, 80) }, children);
}

// Columns by how wide the rows of a difference are, in reports that do not name them.
const TERMS = { 2: ["path", "value"], 3: ["dimension", "code", "name"] };

// The rows that differ, in the columns at the places `shown` if those are known: missing ones, extra ones, changed ones in pairs of gold and predicted, and repeated ones.
function differenceTable(difference, columns, terms, shown) {
  const { missing = [], extra = [], changed = [], repeated = [], counts } = difference;
  const rows = [...missing, ...extra, ...changed.flatMap(({ gold, predicted }) => [gold, predicted]), ...repeated.map(({ row }) => row)];
  if (!rows.length) return null;
  const width = Math.max(...rows.map((row) => row.length));
  const fitting = (names) => (names?.length === width ? names : null);
  const names = fitting(difference.columns) ?? fitting(columns) ?? TERMS[width] ?? Array(width).fill("");
  const others = fitting(difference.predicted_columns) ?? names;
  const differing = new Set(changed.flatMap(({ gold, predicted }) => gold.flatMap((value, place) => (key(value) === key(predicted[place]) ? [] : [place]))));
  const byInterest = [...differing, ...names.keys()].filter((place, at, all) => all.indexOf(place) === at);
  const places = shown ?? byInterest.slice(0, width > WIDE ? WIDE : width).sort((one, other) => one - other);
  const chosen = (row) => places.map((place) => row[place]);
  const areNumbers = ofNumbers(width, rows, terms);
  const cells = (row, other, tag) =>
    places.map((place) => (other && key(row[place]) !== key(other[place]) ? marked(row[place], tag, terms, areNumbers[place]) : cell(row[place], terms, areNumbers[place])));
  const line = (word, kind, inside) => make("tr", { class: kind }, make("th", { scope: "row" }, word), inside);
  const more = (side, shown) => {
    const left = amount(counts?.[side]) - shown - changed.length;
    return left > 0 ? make("tr", { class: side }, make("td", { class: "more", colspan: places.length + 1 }, `… ${number(left)} more ${side} row${left === 1 ? "" : "s"}`)) : null;
  };
  const times = (count, side) => `${valueText(count)} in ${side}`;
  const heads = (texts) => columnHeads(chosen(texts), chosen(areNumbers));
  const isRenamed = names.some((name, place) => name !== others[place]);
  const bodies = [
    [...missing.map((row) => line("missing", "missing", cells(row))), more("missing", missing.length)],
    [...extra.map((row) => line("extra", "extra", cells(row))), more("extra", extra.length)],
    ...changed.map(({ gold, predicted }) => [line("gold", "changed first", cells(gold, predicted, "ins")), line("predicted", "changed", cells(predicted, gold, "del"))]),
    repeated.map(({ row, gold, predicted }) => line([times(gold, "gold"), make("br"), times(predicted, "predicted")], "repeated", cells(row))),
  ];
  return [
    scrollable(
      "Differences",
      table(
        "Rows that differ",
        isRenamed
          ? [[make("th", { scope: "row" }, "gold"), heads(names)], [make("th", { scope: "row" }, "predicted"), heads(others)]]
          : [[make("td"), heads(names)]],
        bodies.filter((lines) => content(lines).length).map((lines) => make("tbody", {}, lines)),
      ),
    ),
    places.length < width ? make("p", { class: "quiet" }, `${number(places.length)} of ${number(width)} columns, those with differences first. The answers below have all.`) : null,
  ];
}
