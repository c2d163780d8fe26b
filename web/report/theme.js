// Light and dark: the system's preference, unless the reader chose otherwise.
// The choice is written to <html data-theme> before the body is parsed, so that nothing flashes.
(function (rw) {
  "use strict";
  const KEY = "ropewalk-theme";
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const listeners = [];
  let colours = new Map();
  let printing = false;

  // A page opened from a file may be refused storage; then the choice lasts as long as the page.
  let chosen = null;
  try {
    chosen = window.localStorage.getItem(KEY);
  } catch {
    chosen = null;
  }

  function current() {
    if (printing) return "light";
    if (chosen === "light" || chosen === "dark") return chosen;
    return system.matches ? "dark" : "light";
  }

  function apply() {
    document.documentElement.dataset.theme = current();
    colours = new Map();
    for (const listener of listeners) listener(current());
  }

  // A reader who chooses the system's preference follows the system again.
  function toggle() {
    const wanted = current() === "dark" ? "light" : "dark";
    chosen = (wanted === "dark") === system.matches ? null : wanted;
    try {
      if (chosen) window.localStorage.setItem(KEY, chosen);
      else window.localStorage.removeItem(KEY);
    } catch {
      // Nothing to do: the choice then ends with the page.
    }
    apply();
  }

  /** The value of a CSS custom property such as `--series-1`, for the canvas, which cannot read CSS. */
  function colour(name) {
    if (!colours.has(name)) {
      const value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
      colours.set(name, value);
    }
    return colours.get(name);
  }

  system.addEventListener("change", apply);
  window.addEventListener("beforeprint", () => { printing = true; apply(); });
  window.addEventListener("afterprint", () => { printing = false; apply(); });
  apply();

  rw.theme = { toggle, colour, current, onChange: (listener) => listeners.push(listener) };
})((window.Ropewalk = window.Ropewalk || {}));
