// What a system did until it answered, as a timeline: texts, JSON and tables of a model, shown and never run.

const STEP_LINE = 240; // characters of an input or an output beside the name of its step

function isTable(value) {
  return typeof value === "object" && value !== null && Array.isArray(value.columns) && Array.isArray(value.rows);
}

// Whether there is nothing to show, as of a tool without arguments.
function isNothing(value) {
  return value === undefined || value === "" || (typeof value === "object" && value !== null && !(value instanceof Numeral) && !Object.keys(value).length);
}

// An input or an output in one line.
function stepLine(value) {
  if (isNothing(value)) return "";
  if (isTable(value)) return `${number(amount(value.row_count))} row${amount(value.row_count) === 1 ? "" : "s"}`;
  return oneLine(valueText(value), STEP_LINE);
}

// The same as a whole: a table with its first rows, JSON in lines, or a text.
function stepContent(value, caption, terms) {
  if (isTable(value)) {
    const more = amount(value.row_count) - value.rows.length;
    return [
      value.rows.length ? sampleTable(value.columns, value.rows, { lone: [], changed: [], caption }, terms) : make("p", { class: "quiet" }, `${value.columns.join(", ")}: no rows`),
      more > 0 ? make("p", { class: "quiet more" }, `… ${number(more)} more row${more === 1 ? "" : "s"}`) : null,
    ];
  }
  const text = valueText(value);
  return isJson(text) ? coloured(jsonLines(text)) : make("pre", { tabindex: 0 }, text);
}

// A bar from where a step began to where it ended, on the time of all steps.
function stepBar(start, taken, whole) {
  const names = "http://www.w3.org/2000/svg";
  const [drawing, bar] = ["svg", "rect"].map((tag) => document.createElementNS(names, tag));
  const set = (element, attributes) => Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  set(drawing, { viewBox: "0 0 100 1", preserveAspectRatio: "none", "aria-hidden": "true" });
  const width = Math.max((100 * taken) / whole, 1);
  set(bar, { x: Math.min((100 * start) / whole, 100 - width), width, height: 1 });
  drawing.append(bar);
  return drawing;
}

function timeline(steps, about, kind, terms) {
  if (!steps?.length) return about ? make("p", { class: "quiet" }, about) : null;
  const found = steps.map(exact);
  const whole = found.reduce((sum, { seconds: taken }) => sum + amount(taken), 0);
  let start = 0;
  const items = found.map((step, place) => {
    const taken = amount(step.seconds);
    const bar = whole > 0 && step.seconds !== undefined ? stepBar(start, taken, whole) : null;
    start += taken;
    return stepItem(step, place, bar, kind, terms);
  });
  const list = make("ol", { class: "steps" }, items);
  const button = make("button", { type: "button", class: "small", "aria-pressed": "false" }, "Open all");
  button.addEventListener("click", () => {
    const isOpen = button.getAttribute("aria-pressed") === "false";
    button.setAttribute("aria-pressed", String(isOpen));
    button.textContent = isOpen ? "Close all" : "Open all";
    list.querySelectorAll(":scope > li > details").forEach((details) => (details.open = isOpen));
  });
  const isOpenable = list.querySelectorAll(":scope > li > details").length > 1;
  return [make("p", { class: "quiet about-steps" }, make("span", {}, about), isOpenable ? button : null), list];
}

function stepItem(step, place, bar, kind, terms) {
  const { kind: sort, name, input, output, error, metadata = {} } = step;
  const said = sort === "message" ? (output ?? input) : input;
  const result = error !== undefined ? oneLine(error, STEP_LINE) : sort === "message" ? "" : stepLine(output);
  const head = [
    make("span", { class: "ordinal" }, number(place + 1)),
    make("span", { class: `chip ${sort}` }, sort),
    make("span", { class: "step-name" }, oneLine(name, 80)),
    make("span", { class: sort === "message" ? "given clamped" : "given code" }, stepLine(said)),
    result ? make("span", { class: "returned" }, result) : null,
    make("span", { class: "took" }, bar, step.seconds === undefined ? "" : seconds(amount(step.seconds))),
  ];
  const block = (title, value) => (isNothing(value) ? null : [make("h4", {}, title), stepContent(value, title, terms)]);
  const message = (value) => (typeof value === "string" ? make("p", { class: "said" }, value) : block("Message", value));
  const isQuery = sort === "query" && typeof input === "string";
  const query = isQuery ? pane("Query", `the query of step ${place + 1}`, tokens(withoutMargins(input), kind)).side : null;
  const body = [
    sort === "message" ? message(input) : query ? [make("h4", {}, query[0]), query.slice(1)] : block("Input", input),
    error === undefined ? null : make("p", { class: "fault" }, error),
    sort === "message" ? message(output) : block("Output", output),
    facts(Object.entries(metadata).map(([key, value]) => [oneLine(key, 60), valueText(value)])),
  ];
  const isFailed = error !== undefined;
  return make(
    "li",
    { class: `step ${sort}${isFailed ? " failed" : ""}` },
    content(body).length ? make("details", { open: isFailed }, make("summary", {}, head), make("div", { class: "step-body" }, body)) : make("div", { class: "head" }, head),
  );
}
