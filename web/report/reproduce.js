// Papers reproduced: a count on top, then one section per paper with its figures and its table of numbers.
(function (rw) {
  "use strict";
  const { h } = rw.dom;

  // Verdicts fall into three classes; each has a sign, so that colour is never the only distinction.
  const CLASSES = [
    { name: "good", sign: "✓", match: /^(agrees|claim holds|holds|pass)/i },
    { name: "bad", sign: "✕", match: /^(claim fails|fails|fail)/i },
    { name: "warn", sign: "≠", match: /^differs/i },
    { name: "other", sign: "?", match: /^undecided/i },
    { name: "other", sign: "·", match: /.*/ },
  ];

  // With more rows than this, the papers are folded at first.
  const OPEN_ROWS = 40;

  const classOf = (verdict) => CLASSES.find((c) => c.match.test(String(verdict ?? "")));
  const verdictOf = (row) => row.verdict || "no verdict";

  function count(rows) {
    const counts = new Map();
    for (const row of rows) counts.set(verdictOf(row), (counts.get(verdictOf(row)) || 0) + 1);
    const rank = (verdict) => CLASSES.indexOf(classOf(verdict));
    return [...counts].sort((a, b) => rank(a[0]) - rank(b[0]));
  }

  function chip(verdict, text) {
    const { name, sign } = classOf(verdict);
    return h("span", { class: `chip ${name}` }, h("span", { "aria-hidden": "true" }, sign), text || verdict);
  }

  // The columns with values, and the words of the page: papers, or the kernel beside the simulator.
  const PAPERS = {
    columns: [["paper_value", "Paper"], ["model_value", "Model"], ["simulated_value", "Simulated"], ["peer_value", "Peer"]],
    lead: "numbers and claims agree with what was printed",
    caption: "printed, predicted and simulated",
    search: "paper, item, case, quantity",
    sections: "Papers",
  };
  const KERNEL = {
    columns: [["peer_value", "Kernel"], ["simulated_value", "Simulated"]],
    lead: "figures of the simulator agree with the kernel",
    caption: "the kernel and the simulator",
    search: "scenario, transport, quantity",
    sections: "Scenarios",
  };
  let words = PAPERS;

  function columns(withPeer) {
    return words.columns.filter(([key]) => withPeer || key !== "peer_value");
  }

  function line(row, withPeer) {
    const shown = columns(withPeer);
    const { unit, cells } = rw.format.row(shown.map(([key]) => row[key]), row.unit);
    return { unit, cells: cells.map((text, i) => h("td", { class: "num", role: "cell", "data-label": shown[i][1] }, text)) };
  }

  // "+4.7 to +5.3 %, 10 seeds".
  function spread(row) {
    const percent = (x) => `${x < 0 ? "−" : "+"}${Math.abs(x * 100).toFixed(1)}`;
    const interval = row.interval ? `95 % interval ${row.interval.map(percent).join(" to ")} %` : null;
    const seeds = typeof row.seeds === "number" ? `${row.seeds} seeds` : row.seeds;
    return [interval, seeds].filter(Boolean).join(", ");
  }

  // Details of a row on demand: the reason, the number of seeds.
  function details(row) {
    const readings = (row.readings || []).length ? `Read as ${row.readings.join(", ")}` : null;
    return [row.reason, spread(row), readings].filter(Boolean);
  }

  function reason(row, width, id) {
    return h("tr", { class: "reason", id, hidden: true, role: "row" },
      h("td", { colspan: width, role: "cell" }, details(row).map((text) => h("p", null, text))));
  }

  function why(target, verdict) {
    return h("button", {
      type: "button", class: "why", "aria-expanded": "false", "aria-controls": target.id, "aria-label": `Why: ${verdict}`,
      onclick: (event) => {
        target.hidden = !target.hidden;
        event.currentTarget.setAttribute("aria-expanded", String(!target.hidden));
      },
    }, "why");
  }

  function lines(row, withPeer) {
    const width = columns(withPeer).length + 4;
    const explained = details(row).length ? reason(row, width, rw.dom.anchor(`reason ${row.paper} ${row.item}`)) : null;
    const { unit, cells } = line(row, withPeer);
    const main = h("tr", { role: "row", "data-verdict": verdictOf(row), "data-item": rw.format.words(row.item) },
      h("th", { scope: "row", role: "rowheader" }, rw.format.words(row.case)),
      h("td", { role: "cell", "data-label": "Quantity", class: "quantity" }, row.quantity, unit ? h("span", { class: "unit" }, unit) : null),
      cells,
      h("td", { class: "num", role: "cell", "data-label": "Difference" }, rw.format.rowDifference(row)),
      h("td", { role: "cell", "data-label": "Verdict", class: "verdict" }, chip(verdictOf(row), row.judged_by ? `${verdictOf(row)}, ${row.judged_by}` : null), explained ? why(explained, verdictOf(row)) : null));
    return explained ? [main, explained] : [main];
  }

  // One <tbody> for each item of the paper ("Table 2", "Figure 5"), headed by its name.
  function groups(rows, withPeer) {
    const items = [...new Set(rows.map((row) => row.item))];
    return items.map((item) => h("tbody", { role: "rowgroup" },
      h("tr", { class: "item", role: "row" }, h("th", { scope: "rowgroup", role: "rowheader", colspan: columns(withPeer).length + 4 }, rw.format.words(item))),
      rows.filter((row) => row.item === item).flatMap((row) => lines(row, withPeer))));
  }

  function table(paper, rows) {
    const withPeer = rows.some((row) => row.peer_value !== null && row.peer_value !== undefined);
    const values = columns(withPeer).map(([, name]) => [name, "num"]);
    const heads = [["Case"], ["Quantity"], ...values, ["Difference", "num"], ["Verdict"]];
    return rw.dom.scroller(paper,
      h("table", { class: "rows", role: "table" },
        h("caption", null, `${paper}: ${words.caption}`),
        h("thead", { role: "rowgroup" }, h("tr", { role: "row" },
          heads.map(([text, kind]) => h("th", { scope: "col", role: "columnheader", class: kind }, text)))),
        groups(rows, withPeer)));
  }

  function section(paper, report) {
    const rows = report.rows.filter((row) => row.paper === paper);
    const figures = report.figures.filter((figure) => figure.paper === paper);
    const id = rw.dom.anchor(`paper ${paper}`);
    const element = h("details", { class: "paper", id, open: report.rows.length <= OPEN_ROWS },
      h("summary", null,
        h("h2", { id: `${id}-title` }, paper),
        h("span", { class: "chips" }, count(rows).map(([verdict, n]) => chip(verdict, `${n} ${verdict}`)))));
    return { id, element, paper, rows, figures };
  }

  // What is shown: the rows of one verdict, or of all, that contain every word of a text.
  const wanted = { verdict: null, words: [] };

  // The charts of a folded section are drawn when it is unfolded: hundreds of them take seconds.
  function drawCharts(s) {
    if (!s.figures.length) return;
    const place = h("div", null);
    s.element.append(place);
    const once = () => {
      // A filter unfolds sections, and hides their charts.
      const filtered = wanted.verdict !== null || wanted.words.length > 0;
      if (s.element.open && !filtered && !place.firstChild) rw.figures.draw(place, s.figures);
    };
    s.element.addEventListener("toggle", once);
    once();
  }

  function hide(row) {
    const text = `${row.closest("details").querySelector("h2").textContent} ${row.dataset.item} ${row.textContent}`.toLowerCase();
    row.hidden = (wanted.verdict !== null && row.dataset.verdict !== wanted.verdict) || !wanted.words.every((word) => text.includes(word));
    const next = row.nextElementSibling;
    if (row.hidden && next && next.classList.contains("reason")) next.hidden = true;
    const button = row.querySelector(".why");
    if (row.hidden && button) button.setAttribute("aria-expanded", "false");
  }

  // Papers with rows that match are unfolded, and those without any are hidden.
  function filter() {
    const on = wanted.verdict !== null || wanted.words.length > 0;
    for (const row of document.querySelectorAll("tr[data-verdict]")) hide(row);
    for (const body of document.querySelectorAll("table.rows tbody")) {
      body.hidden = !body.querySelector("tr[data-verdict]:not([hidden])");
    }
    const papers = [...document.querySelectorAll("details.paper")];
    const many = document.querySelectorAll("tr[data-verdict]").length > OPEN_ROWS;
    for (const paper of papers) {
      const found = paper.querySelector("tr[data-verdict]:not([hidden])");
      paper.hidden = on && !found;
      paper.open = on ? Boolean(found) : !many;
      const charts = paper.querySelector(".charts");
      if (charts) charts.hidden = on;
    }
    const shown = document.querySelectorAll("tr[data-verdict]:not([hidden])").length;
    document.getElementById("matches").textContent = on ? `${shown} shown` : "";
  }

  function press(verdict, buttons) {
    wanted.verdict = wanted.verdict === verdict ? null : verdict;
    for (const [name, button] of buttons) button.setAttribute("aria-pressed", String(name === wanted.verdict));
    filter();
  }

  function search() {
    return h("p", { class: "search" },
      h("label", null, "Filter ", h("input", {
        type: "search", placeholder: words.search, oninput: (event) => {
          wanted.words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
          filter();
        },
      })),
      h("span", { id: "matches", class: "note", role: "status" }));
  }

  function overview(rows) {
    const buttons = new Map();
    const counts = count(rows);
    for (const [verdict, n] of counts) {
      const { name, sign } = classOf(verdict);
      buttons.set(verdict, h("button",
        { type: "button", class: `tally ${name}`, "aria-pressed": "false", onclick: () => press(verdict, buttons) },
        h("span", { class: "figure" }, String(n)),
        h("span", { class: "word" }, h("span", { "aria-hidden": "true" }, `${sign} `), verdict)));
    }
    const good = rows.filter((row) => classOf(verdictOf(row)).name === "good").length;
    return h("div", { class: "overview" },
      h("p", { class: "lead" }, `${good} of ${rows.length} ${words.lead}.`),
      h("div", { class: "tallies", role: "group", "aria-label": "Verdicts; a click shows only the rows of one" }, [...buttons.values()]),
      search());
  }

  function contents(sections) {
    if (sections.length < 2) return null;
    const entries = sections.map((s) => {
      const good = s.rows.filter((row) => classOf(verdictOf(row)).name === "good").length;
      const unfold = () => { s.element.open = true; };
      return h("li", null, h("a", { href: `#${s.id}`, onclick: unfold }, s.paper), s.rows.length ? h("span", { class: "note" }, ` ${good} of ${s.rows.length}`) : null);
    });
    return h("nav", { class: "contents", "aria-label": words.sections }, h("ol", null, entries));
  }

  /** Draws the overview and one section per paper into `parent`. */
  function draw(parent, report) {
    words = report.kind === "validate" ? KERNEL : PAPERS;
    const papers = [...new Set([...report.figures, ...report.rows].map((entry) => entry.paper))];
    const sections = papers.map((paper) => section(paper, report));
    if (report.rows.length) parent.append(overview(report.rows));
    const nav = contents(sections);
    if (nav) parent.append(nav);
    for (const s of sections) {
      parent.append(s.element);
      drawCharts(s);
      if (s.rows.length) s.element.append(table(s.paper, s.rows));
    }
  }

  rw.reproduce = { draw };
})((window.Ropewalk = window.Ropewalk || {}));
