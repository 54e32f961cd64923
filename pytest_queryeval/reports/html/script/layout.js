// Queries and answers laid out in lines: only white space changes, and nothing inside texts and comments.

const JOINS = new Set(["join", "left", "right", "full", "inner", "cross", "natural", "outer", "asof", "lateral"]);
const CLAUSES = new Map([
  ["sql", new Set(["with", "select", "from", "where", "group", "having", "order", "limit", "offset", "fetch", "union", "intersect", "except", "qualify", "window", "values", "returning"])],
  ["sparql", new Set(["prefix", "base", "select", "ask", "construct", "describe", "from", "where", "group", "having", "order", "limit", "offset", "values", "optional", "filter", "bind", "minus", "service", "graph"])],
]);
const DEEPEST = 80; // spaces before a line
const BLOCKS = new Set(["select", "with", "values"]);

// Whether dialects may differ in where a text or a comment of this query ends.
function isUnsure(found, kind) {
  const quotes = kind === "sql" ? /\\['"`]/ : /^(?:'''|""")/;
  return found.some(({ sort, text }) => (sort === "string" ? quotes.test(text) : kind === "sql" && (text === "#" || text === "$")));
}

// The tokens of a query in lines by its clauses, for display; null where it has none, or is not sure how to read.
function laidOut(found, kind) {
  const clauses = CLAUSES.get(kind);
  if (!clauses || isUnsure(found, kind)) return null;
  const solid = found.filter(({ sort }) => sort !== "space");
  const spaces = new Map(found.flatMap((token, at) => (found[at - 1]?.sort === "space" ? [[token, found[at - 1]]] : [])));
  const word = (at) => {
    const [before, token] = [solid[at - 1], solid[at]];
    const isPart = before && /[.:]$/.test(before.text) && !spaces.has(token); // of a name such as t.order
    return !isPart && (token?.sort === "keyword" || token?.sort === "word") ? token.text.toLowerCase() : "";
  };
  const lines = [];
  const open = [{ indent: 0, isBlock: true, cases: 0, isBetween: false }];
  let line = 0; // the indentation of the line
  let brackets = 0;
  let breaks = false;
  solid.forEach((token, at) => {
    const [before, own, after] = [word(at - 1), word(at), word(at + 1)];
    const inside = open.at(-1);
    const closes = token.text === ")" || token.text === "}";
    if (closes && open.length > 1) open.pop();
    const around = open.at(-1);
    let { indent } = around;
    if (closes && inside.isBlock && inside !== around) [breaks, indent] = [true, inside.indent - 2];
    else if (kind === "sparql" && solid[at - 1]?.text === ";") indent += 2;
    if (own === "case") around.cases += 1;
    if (around.isBlock && !around.cases) {
      if (clauses.has(own) && !(own === "from" && (before === "distinct" || before === "named"))) breaks = true;
      if (kind === "sql" && JOINS.has(own) && !JOINS.has(before) && (own === "join" || JOINS.has(after))) breaks = true;
      if (kind === "sql" && (own === "or" || (own === "and" && !around.isBetween))) [breaks, indent] = [true, indent + 2];
    }
    if (own === "end" && around.cases) around.cases -= 1;
    if (own === "between" || own === "and") around.isBetween = own === "between";
    if (brackets) lines.push(...[spaces.get(token)].filter(Boolean)); // what stands in brackets may be a name
    else if (at && breaks) {
      line = indent;
      lines.push({ text: `\n${" ".repeat(Math.min(line, DEEPEST))}`, sort: "space" });
    } else if (at && spaces.has(token)) lines.push({ text: " ", sort: "space" });
    lines.push(token);
    if (token.text === "[") brackets += 1;
    if (token.text === "]" && brackets) brackets -= 1;
    const next = solid[at + 1];
    const isBlock = kind === "sql" ? token.text === "(" && BLOCKS.has(after) : token.text === "{";
    if (token.text === "(" || token.text === "{") open.push({ indent: isBlock ? line + 2 : line, isBlock, cases: 0, isBetween: false });
    const endsTriple = kind === "sparql" && around.isBlock && open.length > 1 && (token.text === ";" || token.text === ".");
    const endsGroup = kind === "sparql" && token.text === "}" && next?.text !== ".";
    breaks = isBlock || /^(?:--|#)/.test(token.text) || endsGroup || (endsTriple && (spaces.has(next) || next?.text === "}"));
  });
  return lines;
}

const JSON_TOKEN = /"(?:[^"\\]|\\.)*"|[^\s"[\]{},:]+|[[\]{},:]/gu;
const FENCED = /^[^]*?```(?:json)?[ \t]*\n([^]*?)\n[ \t]*```[^]*$/iu;

// JSON with one member a line, and the path of each value as report.json writes it; null where the text is not JSON.
function jsonLines(text) {
  const content = isJson(text) ? text : text.replace(FENCED, "$1");
  if (!isJson(content)) return null;
  const found = content.match(JSON_TOKEN);
  const lines = [];
  const open = [];
  let path = "$";
  const put = (own, sort, isKey = false) => lines.push({ text: own, sort, key: own, path, isKey });
  const newLine = () => lines.push({ text: `\n${" ".repeat(Math.min(2 * open.length, DEEPEST))}`, sort: "space", path: null });
  const begin = () => {
    const around = open.at(-1);
    if (around?.isList) path = `${around.path}[${around.index}]`;
  };
  found.forEach((own, at) => {
    const around = open.at(-1);
    if (own === "{" || own === "[") {
      begin();
      put(own, "other");
      open.push({ path, isList: own === "[", index: 0, isKey: own === "{" });
      if (found[at + 1] !== "}" && found[at + 1] !== "]") newLine();
    } else if (own === "}" || own === "]") {
      open.pop();
      path = around.path;
      if (found[at - 1] !== "{" && found[at - 1] !== "[") newLine();
      put(own, "other");
    } else if (own === ",") {
      path = around.path;
      put(own, "other");
      Object.assign(around, { index: around.index + 1, isKey: !around.isList });
      newLine();
    } else if (own === ":") {
      put(own, "other", true);
      lines.push({ text: " ", sort: "space", path: null });
      around.isKey = false;
    } else if (around?.isKey) {
      path = around.path + step(JSON.parse(own));
      put(own, "word", true);
    } else {
      begin();
      put(own, own.startsWith('"') ? "string" : /^[tfn]/.test(own) ? "keyword" : "number");
    }
  });
  return lines;
}

function isJson(text) {
  try {
    return typeof JSON.parse(text) === "object";
  } catch {
    return false;
  }
}

function step(name) {
  if (/^[\p{ID_Start}_]\p{ID_Continue}*$/u.test(name)) return `.${name}`;
  const short = { "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", "'": "\\'", "\\": "\\\\" };
  return `['${name.replace(/[\x00-\x1f'\\]/g, (own) => short[own] ?? `\\u${own.charCodeAt(0).toString(16).padStart(4, "0")}`)}']`;
}

// Sets `alone` on the members of JSON that are on the paths of a difference: with their names, where these are lone.
function markMembers(lines, lone, changed) {
  const within = (path, roots) => roots.some((root) => path === root || (path.startsWith(root) && /^[.[]/.test(path.slice(root.length))));
  for (const token of lines) {
    if (token.path === null) continue;
    token.alone = within(token.path, lone) || (within(token.path, changed) && !(token.isKey && changed.includes(token.path)));
  }
}
