// The page itself: shows all parts of the data, in an order that depends on its kind.
(function (rw) {
  "use strict";
  const { h } = rw.dom;
  const KINDS = { run: "Run", compare: "Comparison", reproduce: "Reproduction", tune: "Window limits", tournament: "Tournament", sweep: "Sweep", validate: "Validation" };

  function themeButton() {
    const button = h("button", { type: "button", onclick: rw.theme.toggle });
    const name = () => {
      button.textContent = rw.theme.current() === "dark" ? "Light" : "Dark";
      button.setAttribute("aria-label", `Switch to ${button.textContent.toLowerCase()} colours`);
    };
    rw.theme.onChange(name);
    name();
    return button;
  }

  function header(report) {
    const kind = KINDS[report.kind] || "Report";
    document.title = `${report.title || kind} – Ropewalk`;
    document.getElementById("title").textContent = report.title || kind;
    const origin = [h("span", { class: "kind" }, kind)];
    if (report.generated_from) origin.push(h("code", null, report.generated_from));
    document.getElementById("origin").append(...origin);
    document.getElementById("actions").append(
      h("button", { type: "button", "aria-label": "Download JSON", onclick: () => rw.data.download(report) },
        h("span", { class: "wide-only" }, "Download "), "JSON"),
      themeButton());
    const version = report.version ? ` ${report.version}` : "";
    document.getElementById("colophon").append(
      h("p", null, `Made by Ropewalk${version}. This file contains all of its data. It makes no network requests.`),
      h("p", { class: "help" }, "In a chart: drag to zoom, double-click to reset. With the keyboard: the arrow keys move the cursor, + and − zoom, 0 resets. kB is 1000 bytes."));
  }

  function runs(main, report) {
    if (!report.runs.length) return;
    main.append(rw.tiles.headline(report));
    if (report.runs.length > 1) {
      rw.compare.draw(main, report);
      return;
    }
    if (report.repeats.length) rw.seeds.draw(main, report);
    if (report.repeats.length) main.append(h("h2", null, `Seed ${report.runs[0].seed} in full`));
    rw.run.draw(main, report.runs[0]);
  }

  function papers(main, report) {
    if (report.figures.length || report.rows.length) rw.reproduce.draw(main, report);
  }

  function limits(main, report) {
    if (report.tuning) rw.tune.draw(main, report);
  }

  function contest(main, report) {
    if (report.tournament) rw.tournament.draw(main, report.tournament);
  }

  function points(main, report) {
    if (report.sweep) rw.sweep.draw(main, report.sweep);
  }

  // Everything is unfolded for printing.
  function unfoldForPrint() {
    let folded = [];
    window.addEventListener("beforeprint", () => {
      folded = [...document.querySelectorAll("details:not([open])")];
      for (const details of folded) {
        details.open = true;
        // The event of the browser comes only after the page is printed.
        details.dispatchEvent(new Event("toggle"));
      }
    });
    window.addEventListener("afterprint", () => {
      for (const details of folded) details.open = false;
    });
  }

  function build() {
    const main = document.getElementById("main");
    const report = rw.data.load();
    header(report);
    const orders = { reproduce: [papers, runs], tune: [limits, runs], tournament: [contest, runs], sweep: [points] };
    const order = orders[report.kind] || [runs, papers];
    for (const part of order) part(main, report);
    if (!main.querySelector("*:not(noscript)")) main.append(h("p", { class: "note" }, "This report holds no results."));
    unfoldForPrint();
  }

  try {
    build();
  } catch (error) {
    document.getElementById("main").append(h("p", { class: "problem", role: "alert" }, `This report cannot be shown. ${error.message}`));
    console.error(error);
  }
  rw.status.finish();
})((window.Ropewalk = window.Ropewalk || {}));
