// Everything that a page shows of a report is text: elements are built here, and never read from markup.

// The characters that pytest_queryeval/text/formatting.py escapes, as it does.
const UNPRINTABLE = new RegExp(
  "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\xad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b\\u200e\\u200f" +
    "\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ud800-\\udfff\\ufe00-\\ufe0d\\ufeff\\uffa0\\ufff0-\\ufffb\\ufffe\\uffff" +
    "\\u{13430}-\\u{1343f}\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]" +
    "|(?<![\\xa9\\xae\\u203c\\u2049\\u2122\\u2139\\u2190-\\u23ff\\u2460-\\u27ff\\u2900-\\u2bff\\u3030\\u303d\\u3297\\u3299" +
    "\\u{1f000}-\\u{1faff}])[\\ufe0e\\ufe0f](?!\\u20e3)",
  "gu",
);

function escaped(character) {
  const code = character.codePointAt(0);
  const digits = code.toString(16);
  if (code < 0x100) return `\\x${digits.padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${digits.padStart(4, "0")}` : `\\U${digits.padStart(8, "0")}`;
}

function shown(value) {
  return String(value).replaceAll("\r\n", "\n").replace(UNPRINTABLE, escaped);
}

function oneLine(value, characters = 400) {
  const text = shown(String(value).replace(/[^\S\ufeff]+/g, " ").replace(/^ | $/g, ""));
  return text.length > characters ? `${text.slice(0, characters - 1)}…` : text;
}

// An element; its children are elements or text, which is shown and never obeyed.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, shown(value));
  }
  element.append(...content(children));
  return element;
}

function content(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : shown(child)));
}

function number(value) {
  return value.toLocaleString("en-US");
}

function score(value) {
  return value === null || value === undefined ? "n/a" : value.toFixed(3);
}

function seconds(value) {
  if (value === null || value === undefined) return "";
  if (value >= 100) return `${number(Math.round(value))} s`;
  return value >= 1 || value === 0 ? `${value.toPrecision(3).replace(/^0\.00$/, "0")} s` : `${(value * 1000).toPrecision(3)} ms`;
}

// The time of a query or an answer, 0 where nothing was run.
function ran(found) {
  return found?.seconds === 0 ? "not run" : seconds(found?.seconds);
}

// The state of the page as a fragment, of which links are made: nothing in it can be another scheme or a host.
function fragment(state) {
  const parts = Object.entries(state)
    .filter(([, value]) => value !== "" && value !== null && value !== undefined)
    .map(([name, value]) => `${name}=${encoded(value)}`);
  return `#${parts.join("&") || "cases"}`;
}

// Half of a character, as in a path that is not UTF-8, cannot stand in an address.
function wellFormed(text) {
  return text.replace(/\p{Surrogate}/gu, escaped);
}

function encoded(value) {
  return encodeURIComponent(wellFormed(String(value)));
}

function stateOf(hash) {
  const found = new Map();
  for (const part of hash.replace(/^#/, "").split("&")) {
    const [name, ...value] = part.split("=");
    if (value.length) found.set(name, decoded(value.join("=")));
  }
  return found;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
