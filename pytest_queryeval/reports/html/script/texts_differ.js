// Two queries as tokens with colours, and which of them the other one does not have.

const WORDS = new Set(
  ("select from where group order by having limit offset distinct as on join inner left right full outer cross using " +
    "union all intersect except and or not in is null like between exists case when then else end asc desc with " +
    "recursive over partition values cast interval true false filter optional service graph bind minus prefix base " +
    "construct describe ask a union reduced named undef qualify lateral fetch first next rows only")
    .split(" "),
);
const TEXTS = String.raw`(?<string>'(?:[^'\\]|\\.|'')*'?|"(?:[^"\\]|\\.|"")*"?|${"`"}[^${"`"}]*${"`"}?)`;
const REST = String.raw`(?<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?<space>\s+)|(?<other>[<>!=|&]{2}|[^])`;
const WORD = String.raw`(?<word>[?$@:]?[\p{L}_][\p{L}\p{N}_]*)`;
const TOKENS = new Map([
  ["sql", new RegExp(String.raw`(?<comment>--[^\n]*|/\*[^]*?(?:\*/|$))|${TEXTS}|${WORD}|${REST}`, "gu")],
  ["sparql", new RegExp(
    String.raw`(?<iri><[^<>"{}|^\\\s]*>)|(?<comment>#[^\n]*)|${TEXTS}|(?<word>[?$@]?[\p{L}_][\p{L}\p{N}_-]*:?|:)|${REST}`,
    "gu",
  )],
]);
const OTHER_TOKENS = new RegExp(`${TEXTS}|${WORD}|${REST}`, "gu");
const MAX_PAIRS = 6_000_000; // of tokens that are compared: a fraction of a second
const MIN_SHARED = 0.15; // texts with less in common are not versions of one text

// A query without blank lines at its ends, and without the indentation that all of its lines share.
function withoutMargins(text) {
  const lines = text.split("\n");
  const isBlank = (line) => /^[ \t\r]*$/.test(line);
  const inside = lines.slice(lines.findIndex((line) => !isBlank(line)), lines.findLastIndex((line) => !isBlank(line)) + 1);
  const indents = inside.filter((line) => !isBlank(line)).map((line) => line.match(/^[ \t]*/)[0].length);
  const margin = indents.reduce((least, indent) => Math.min(least, indent), Infinity);
  return inside.map((line) => line.slice(margin)).join("\n");
}

function tokens(text, kind) {
  const isQuery = kind === "sql" || kind === "sparql";
  return Array.from(text.matchAll(TOKENS.get(kind) ?? OTHER_TOKENS), (match) => {
    const [sort] = Object.entries(match.groups).find(([, found]) => found !== undefined);
    const isWord = sort === "word" && isQuery && WORDS.has(match[0].toLowerCase());
    return { text: match[0], sort: isWord ? "keyword" : sort, key: kind === "sql" ? sqlKey(match[0], sort) : isWord ? match[0].toLowerCase() : match[0] };
  });
}

// What is the same token in SQL: the letter case of names does not matter, nor whether they stand in backticks.
function sqlKey(text, sort) {
  return sort === "word" || text.startsWith("`") ? text.replaceAll("`", "").toLowerCase() : text;
}

// Sets `alone` on the tokens that the other text does not have in this order; false where the texts have too little in common.
function markDifferences(gold, predicted) {
  const first = gold.filter((token) => token.sort !== "space");
  const second = predicted.filter((token) => token.sort !== "space");
  let start = 0;
  while (start < first.length && start < second.length && first[start].key === second[start].key) start += 1;
  let end = 0;
  const longest = Math.min(first.length, second.length) - start;
  while (end < longest && first.at(-1 - end).key === second.at(-1 - end).key) end += 1;
  const left = first.slice(start, first.length - end);
  const right = second.slice(start, second.length - end);
  if (left.length * right.length > MAX_PAIRS) return false;
  const common = commonTokens(left, right);
  if (start + end + common.length < MIN_SHARED * Math.max(first.length, second.length)) return false;
  const shared = new Set(common.flat());
  for (const token of [...left, ...right]) token.alone = !shared.has(token);
  return true;
}

// Pairs of a longest common subsequence.
function commonTokens(left, right) {
  const width = right.length + 1;
  const lengths = new Uint16Array((left.length + 1) * width);
  for (let row = left.length - 1; row >= 0; row -= 1) {
    for (let column = right.length - 1; column >= 0; column -= 1) {
      const here = row * width + column;
      lengths[here] =
        left[row].key === right[column].key
          ? lengths[here + width + 1] + 1
          : Math.max(lengths[here + width], lengths[here + 1]);
    }
  }
  const pairs = [];
  for (let row = 0, column = 0; row < left.length && column < right.length; ) {
    const here = row * width + column;
    if (left[row].key === right[column].key) pairs.push([left[row++], right[column++]]);
    else if (lengths[here + width] >= lengths[here + 1]) row += 1;
    else column += 1;
  }
  return pairs;
}

// A text in colours; tokens that only this text has are marked with `tag`, neighbours on a line together.
function coloured(found, tag) {
  const code = make("code");
  let mark = null;
  found.forEach((token, place) => {
    const goesOn = token.alone || (mark && token.sort === "space" && !token.text.includes("\n") && found[place + 1]?.alone);
    if (!goesOn) mark = null;
    else if (!mark) code.append((mark = make(tag)));
    (mark ?? code).append(token.sort === "space" || token.sort === "other" ? shown(token.text) : make("span", { class: /^[?$]/.test(token.text) && token.text.length < 40 ? "variable" : token.sort }, token.text));
  });
  return make("pre", { tabindex: 0 }, code);
}
