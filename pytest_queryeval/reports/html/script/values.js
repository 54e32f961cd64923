// Values of answers and of systems, with each number as the report writes it.

// JavaScript would round whole numbers beyond 2^53, and write 1.0 as 1.
class Numeral {
  constructor(text) {
    this.text = text;
  }
}

// A count that came with values; 0 where there is none.
function amount(numeral) {
  return numeral instanceof Numeral ? Number(numeral.text) : 0;
}

// What `with_exact_numbers` of pytest_queryeval/reports/html/case_list.py has packed.
function exact(value) {
  if (typeof value === "string") return /^#[^#]/.test(value) ? new Numeral(value.slice(1)) : value.replace(/^#/, "");
  if (Array.isArray(value)) return value.map(exact);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, own]) => [name, exact(own)]));
}

// JSON of a value; with a margin it has several lines.
function json(value, { margin, written = (numeral) => numeral.text } = {}) {
  if (value instanceof Numeral) return written(value);
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const inner = margin === undefined ? undefined : `${margin}  `;
  const [first, last] = Array.isArray(value) ? "[]" : "{}";
  const named = (name) => (Array.isArray(value) ? "" : `${JSON.stringify(name)}: `);
  const items = Object.entries(value).map(([name, own]) => `${named(name)}${json(own, { margin: inner, written })}`);
  if (margin === undefined || !items.length) return `${first}${items.join(", ")}${last}`;
  return `${first}\n${inner}${items.join(`,\n${inner}`)}\n${margin}${last}`;
}

function valueText(value) {
  return typeof value === "string" ? value : json(value);
}

// The same for values that are equal, as 1 and 1.0 are.
function key(value) {
  return json(value, { written: comparable });
}

function comparable({ text }) {
  if (/^-?\d+$/.test(text)) return text;
  const value = Number(text);
  return String(Number.isInteger(value) ? BigInt(value) : value);
}
