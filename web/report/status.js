// The page's status for tests: charts drawn, points in each, errors, layout.
// It is loaded first, so that it also sees the errors of every later script.
window.ropewalkReport = { ready: false, charts: 0, points: [], errors: [], layout: null };

(function (rw) {
  "use strict";
  const state = window.ropewalkReport;

  function note(message) {
    state.errors.push(String(message));
    publish();
  }

  window.addEventListener("error", (event) => note(event.message));
  window.addEventListener("unhandledrejection", (event) => note(event.reason));
  const consoleError = console.error.bind(console);
  console.error = (...parts) => {
    note(parts.map(String).join(" "));
    consoleError(...parts);
  };

  /** Counts one chart that draws `points` finite points. */
  function chart(points) {
    state.charts += 1;
    state.points.push(points);
    publish();
  }

  function measure() {
    const root = document.documentElement;
    return { scrollWidth: root.scrollWidth, innerWidth: window.innerWidth, theme: root.dataset.theme };
  }

  // A copy in the document, for tools that can read a page but not run code in it.
  function publish() {
    if (!state.ready) return;
    state.layout = measure();
    let element = document.getElementById("ropewalk-status");
    if (!element) {
      element = document.createElement("script");
      element.type = "application/json";
      element.id = "ropewalk-status";
      document.body.append(element);
    }
    element.textContent = JSON.stringify(state).replaceAll("<", "\\u003c");
  }

  /** Declares the page complete; later errors and charts still update the published state. */
  function finish() {
    state.ready = true;
    publish();
    window.addEventListener("resize", publish);
  }

  rw.status = { chart, finish, note };
})((window.Ropewalk = window.Ropewalk || {}));
