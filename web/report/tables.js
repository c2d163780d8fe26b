// Tables of results: one run in detail, its paths and flows, all runs side by side.
(function (rw) {
  "use strict";
  const { h } = rw.dom;
  const { at, best } = rw.metrics;

  const heading = (metric, unit) => [metric.label, unit ? h("span", { class: "unit" }, unit) : null];

  function group({ title, metrics }, result) {
    const known = metrics.filter((m) => at(result, m.path) !== null);
    if (!known.length) return null;
    const lines = known.map((m) => h("tr", null,
      h("th", { scope: "row", title: m.means || null }, m.label),
      h("td", { class: "num" }, rw.format.value(at(result, m.path), m.kind))));
    return h("table", { class: "facts" }, h("caption", null, title), h("tbody", null, lines));
  }

  /** Everything a run's document says, in small groups. */
  function detail(result) {
    return h("div", { class: "facts-grid" }, rw.metrics.detail.map((g) => group(g, result)));
  }

  function meter(share) {
    if (!rw.format.isNumber(share)) return null;
    const width = `width: ${(100 * Math.min(1, Math.max(0, share))).toFixed(1)}%`;
    return h("span", { class: "meter", "aria-hidden": "true" }, h("span", { style: width }));
  }

  // The cells of a table with a run or a path in each line and a metric in each column.
  function grid(documents, metrics, withMeters) {
    const all = metrics.map((metric) => documents.map((d) => at(d, metric.path)));
    const scales = rw.format.shared(all.map((values, i) => [metrics[i].kind, values]));
    return metrics.map((metric, number) => {
      const values = all[number];
      const { unit, cells } = rw.format.column(values, metric.kind, scales);
      const wins = best(values, metric.better);
      return {
        metric, unit, values,
        cells: cells.map((text, i) => h("td", { class: wins[i] ? "num best" : "num" },
          text,
          wins[i] ? h("span", { class: "hidden" }, " (best)") : null,
          withMeters && metric.path === "utilisation" ? meter(values[i]) : null)),
      };
    });
  }

  // The parts of one run, one in each line.
  function parts(list, metrics, title, name) {
    if (!list || !list.length) return null;
    const columns = grid(list, metrics, true).filter((c) => c.values.some((v) => v !== null));
    return rw.dom.scroller(title,
      h("table", { class: "wide" },
        h("caption", null, title),
        h("thead", null, h("tr", null,
          h("th", { scope: "col" }, name),
          columns.map((c) => h("th", { scope: "col", class: "num", title: c.metric.means || null }, heading(c.metric, c.unit))))),
        h("tbody", null, list.map((part, i) => h("tr", null,
          h("th", { scope: "row" }, part.name), columns.map((c) => c.cells[i]))))));
  }

  // The directions of a tunnel; empty without one.
  const directionsOf = (result) => (result && result.directions) || [];

  /** The paths of one run; of a tunnel, each in both directions. */
  function paths(result) {
    const directions = directionsOf(result);
    if (!directions.length) return parts(result && result.paths, rw.metrics.paths, "Paths", "Path");
    const each = directions[0].paths.flatMap((path, i) => directions.map((direction) => (
      { ...direction.paths[i], name: `${path.name}, ${direction.name}` })));
    return parts(each, rw.metrics.paths, "Paths", "Path and direction");
  }

  /** The directions of a tunnel. */
  const directions = (result) => parts(directionsOf(result), rw.metrics.directions, "Directions", "Direction");

  /** The flows of one run through a tunnel. */
  const flows = (result) => parts(result && result.flows, rw.metrics.flows, "Flows", "Flow");

  // Sorting by a click on a column's head: best first, the other way round on the second click.
  function sortBy(body, lines, columns, column, heads) {
    const head = heads[column];
    const wanted = columns[column].metric.better === "high" ? "descending" : "ascending";
    const other = wanted === "descending" ? "ascending" : "descending";
    const order = head.getAttribute("aria-sort") === wanted ? other : wanted;
    heads.forEach((one) => one.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", order);
    const { values } = columns[column];
    const sign = order === "ascending" ? 1 : -1;
    const rank = (i) => (rw.format.isNumber(values[i]) ? sign * values[i] : Infinity);
    const order2 = lines.map((_, i) => i).sort((a, b) => (rank(a) === rank(b) ? a - b : rank(a) - rank(b)));
    body.append(...order2.map((i) => lines[i]));
  }

  /** All runs side by side; the best of each column stands out. `mark(run, index)` may add a colour key. */
  function comparison(runs, mark) {
    const columns = grid(runs.map((r) => r.result), rw.metrics.comparison, false)
      .filter((c) => c.values.some((v) => v !== null));
    const lines = runs.map((run, i) => h("tr", null,
      h("th", { scope: "row" }, h("span", { class: "run-name" }, mark(run, i), h("span", null, run.label))), columns.map((c) => c.cells[i])));
    const body = h("tbody", null, lines);
    const heads = columns.map((c, i) => h("th", { scope: "col", class: "num", title: c.metric.means || null },
      h("button", { type: "button", class: "sort", onclick: () => sortBy(body, lines, columns, i, heads) },
        heading(c.metric, c.unit))));
    return rw.dom.scroller("Runs side by side",
      h("table", { class: "wide comparison" },
        h("caption", null, "Runs side by side"),
        h("thead", null, h("tr", null, h("th", { scope: "col" }, "Run"), heads)),
        body));
  }

  rw.tables = { detail, directions, paths, flows, comparison };
})((window.Ropewalk = window.Ropewalk || {}));
