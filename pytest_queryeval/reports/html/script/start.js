// The page comes to life: the table, and cases by their address.

const FILTERS = ["q", "show", "label", "by"];

function printing() {
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open]):not(.table-of-chart)")];
    for (const details of opened) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
  });
}

function follow(cases) {
  const dialog = document.getElementById("case");
  let state = Object.fromEntries(stateOf(location.hash));
  let listed = null;
  let found = [];
  const withoutCase = () => {
    const { case: _, at: __, ...others } = state;
    return others;
  };
  const showList = () => {
    const wanted = fragment(withoutCase());
    if (wanted === listed) return;
    listed = wanted;
    setFilters(state);
    found = showTable(cases, withoutCase(), change, check);
  };
  function change(changes) {
    const isFilter = [...FILTERS, ...cases.groups.map(([name]) => name)].some((name) => name in changes) || "sort" in changes;
    state = { ...state, ...(isFilter && { page: "" }), ...changes };
    for (const name of Object.keys(state)) if (state[name] === "") delete state[name];
    history.replaceState(null, "", fragment(state));
    showList();
  }
  const route = async () => {
    state = Object.fromEntries(stateOf(location.hash));
    showList();
    const place = state.case === undefined ? undefined : cases.place(state.case, state.at);
    if (place !== undefined) return showCase(cases, place, found, withoutCase());
    if (dialog.open) dialog.close();
    if (location.hash.includes("=")) document.getElementById("cases").scrollIntoView();
  };
  const setFilters = filters(cases, change);
  const check = columnChoice(cases, change);
  dialog.addEventListener("close", () => {
    if (state.case === undefined) return;
    state = withoutCase();
    history.pushState(null, "", fragment(state));
  });
  addEventListener("hashchange", route);
  return route();
}

async function start() {
  themes();
  printing();
  const waiting = document.getElementById("unpacking");
  waiting.hidden = false;
  const cases = new Cases(await unpacked(document.getElementById("packed-list")));
  await follow(cases);
  waiting.hidden = true;
  performance.mark("queryeval-ready");
}

start().catch((error) => {
  const waiting = document.getElementById("unpacking");
  waiting.hidden = false;
  waiting.textContent = `The cases cannot be shown: ${shown(error.message)}`;
  throw error;
});
