// Light and dark colours.

function stored(value) {
  try {
    if (value !== undefined) localStorage.setItem("queryeval-theme", value);
    return localStorage.getItem("queryeval-theme");
  } catch {
    return null; // a browser may keep pages from storing anything
  }
}

function themes() {
  const button = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const current = () => document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
  const show = (theme) => {
    if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
    button.textContent = current() === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Show the page in ${current() === "dark" ? "light" : "dark"} colours`);
  };
  show(stored());
  dark.addEventListener("change", () => show());
  button.addEventListener("click", () => show(stored(current() === "dark" ? "light" : "dark") ?? (current() === "dark" ? "light" : "dark")));
  button.hidden = false;
}
