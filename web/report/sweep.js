// A sweep: every figure over one varied key, with a line for each combination of the others, and over two keys as a map.
(function (rw) {
  "use strict";
  const { h } = rw.dom;
  const { isNumber } = rw.format;
  // Number of lines shown at first: more would hide each other.
  const SHOWN_AT_FIRST = 6;

  // The figures that the points have: those of the run, and those of each flow.
  function figures(points, flows) {
    return [...rw.vocabulary.run, ...flows].filter((figure) => points.some((point) => isNumber(point[figure.column])));
  }

  const kindOf = (figure) => (figure.kind === "count" ? "number" : figure.kind);
  const isNumeric = (points, key) => points.every((point) => isNumber(point[key.column]));

  function valueOf(point, key) {
    const v = point[key.column];
    return isNumber(v) && key.kind !== "number" ? rw.format.value(v, key.kind) : String(v);
  }

  // "path.lte.rtt 40 ms, transfer.scheduler daps": the other keys of a point.
  const nameOf = (point, keys) => keys.map((key) => `${key.label} ${valueOf(point, key)}`).join(", ") || "all points";

  function grouped(points, keys) {
    const groups = new Map();
    for (const point of points) {
      const name = nameOf(point, keys);
      groups.set(name, [...(groups.get(name) || []), point]);
    }
    return groups;
  }

  // The lines with the best means are shown at first.
  function best(groups, figure) {
    const mean = ([, points]) => {
      const known = points.map((p) => p[figure.column]).filter(isNumber);
      return known.length ? known.reduce((a, b) => a + b, 0) / known.length : 0;
    };
    const sign = figure.better === "low" ? 1 : -1;
    const order = [...groups].sort((a, b) => sign * (mean(a) - mean(b)));
    return new Set(order.slice(0, SHOWN_AT_FIRST).map(([name]) => name));
  }

  function lines(sweep, figure, key) {
    const others = sweep.keys.filter((one) => one !== key);
    const groups = grouped(sweep.points, others);
    const shown = best(groups, figure);
    const numeric = isNumeric(sweep.points, key);
    const half = (point) => point[`${figure.column}_half_width`];
    const end = (point, sign) => (isNumber(point[figure.column]) && isNumber(half(point)) ? point[figure.column] + sign * half(point) : null);
    const series = [...groups].map(([name, points], i) => ({
      name, tag: null, style: numeric ? "line" : "points", size: numeric ? 6 : 9, marker: numeric, hidden: !shown.has(name), ...rw.paint.look(i),
      x: points.map((p) => (numeric ? p[key.column] : String(p[key.column]))),
      y: points.map((p) => p[figure.column] ?? null),
      low: points.map((p) => end(p, -1)), high: points.map((p) => end(p, 1)), whiskers: !numeric,
    }));
    const banded = sweep.points.some((point) => isNumber(half(point)));
    const hidden = groups.size > shown.size ? ` The ${shown.size} best of ${groups.size} lines are shown.` : "";
    return {
      title: `${figure.label} over ${key.label}`,
      note: `${figure.means || ""}${banded ? ` ${numeric ? "Bands" : "Whiskers"}: 95 % confidence interval of the mean.` : ""}${hidden}`,
      x: { label: key.label, kind: numeric ? key.kind : "number" },
      y: { label: figure.label, kind: kindOf(figure) },
      series,
      height: 360,
    };
  }

  // A box for each line, because a line that is not shown is not in the legend.
  function chooser(spec, drawn) {
    if (spec.series.length < 2) return null;
    return h("fieldset", { class: "chooser" }, h("legend", null, "Lines"), spec.series.map((series) => h("label", { class: "choice" },
      h("input", { type: "checkbox", checked: !series.hidden, onchange: (event) => drawn.toggle(series.name, event.target.checked) }),
      rw.compare.sample(series), series.name)));
  }

  const distinct = (points, key) => [...new Set(points.map((p) => p[key.column]))].sort((a, b) => a - b);

  // The figure over two keys, in the unit that suits it.
  function surface(points, figure, [xKey, yKey], name, all) {
    const [x, y] = [distinct(points, xKey), distinct(points, yKey)];
    const values = all.map((p) => p[figure.column]).filter(isNumber);
    const scale = rw.format.pick(kindOf(figure), Math.max(...values.map(Math.abs)));
    const [xScale, yScale] = [[x, xKey], [y, yKey]].map(([values, key]) => rw.format.pick(key.kind, Math.max(...values.map(Math.abs))));
    const at = (a, b) => points.find((p) => p[xKey.column] === a && p[yKey.column] === b);
    const unit = (text, { unit: symbol }) => (symbol ? `${text}, ${symbol}` : text);
    const cell = (a, b) => {
      const point = at(a, b);
      return point && isNumber(point[figure.column]) ? point[figure.column] / scale.factor : null;
    };
    return {
      id: `${figure.column} ${xKey.column} ${yKey.column} ${name}`, title: `${figure.label} over ${xKey.label} and ${yKey.label}`,
      note: name === "all points" ? null : name,
      x_label: unit(xKey.label, xScale), y_label: unit(yKey.label, yScale), value_label: unit(figure.label, scale),
      x: x.map((v) => v / xScale.factor), y: y.map((v) => v / yScale.factor), value: y.map((b) => x.map((a) => cell(a, b))), even: true,
      range: [Math.min(...values) / scale.factor, Math.max(...values) / scale.factor],
    };
  }

  function maps(grid, sweep, figure) {
    const numeric = sweep.keys.filter((key) => isNumeric(sweep.points, key) && distinct(sweep.points, key).length > 1);
    if (numeric.length < 2) return;
    const pair = numeric.slice(0, 2);
    const groups = grouped(sweep.points, sweep.keys.filter((key) => !pair.includes(key)));
    for (const [name, points] of [...groups].slice(0, SHOWN_AT_FIRST)) {
      const cell = h("div", { class: "cell" });
      grid.append(cell);
      rw.surface.create(cell, surface(points, figure, pair, name, sweep.points));
    }
  }

  function select(label, options, onchange) {
    return h("label", { class: "pick" }, `${label} `,
      h("select", { onchange: (event) => onchange(Number(event.target.value)) }, options.map((text, i) => h("option", { value: i }, text))));
  }

  function table(sweep, shown) {
    const scales = rw.format.shared(shown.map((figure) => [kindOf(figure), sweep.points.map((p) => p[figure.column])]));
    const columns = shown.map((figure) => rw.format.column(sweep.points.map((p) => p[figure.column]), kindOf(figure), scales));
    const head = (figure, column) => [figure.label, column.unit ? h("span", { class: "unit" }, column.unit) : null];
    return h("details", { class: "scenario" }, h("summary", null, `All ${sweep.points.length} points in a table`),
      rw.dom.scroller("Points", h("table", { class: "wide" },
        h("caption", { class: "hidden" }, "Points"),
        h("thead", null, h("tr", null,
          sweep.keys.map((key) => h("th", { scope: "col" }, key.label)),
          shown.map((figure, i) => h("th", { scope: "col", class: "num", title: figure.means || null }, head(figure, columns[i]))))),
        h("tbody", null, sweep.points.map((point, row) => h("tr", null,
          sweep.keys.map((key) => h("th", { scope: "row" }, valueOf(point, key))),
          columns.map((column) => h("td", { class: "num" }, column.cells[row]))))))));
  }

  /** Draws the document `sweep` of a report into `parent`. */
  function draw(parent, sweep) {
    const known = figures(sweep.points, sweep.flows || []);
    if (!known.length) return;
    const room = h("div", null);
    let [figure, key] = [known.find((one) => one.column === "goodput_bps") || known[0], sweep.keys[0]];
    const numeric = sweep.keys.find((one) => isNumeric(sweep.points, one));
    key = numeric || key;
    const keys = [key, ...sweep.keys.filter((one) => one !== key)];
    const order = [figure, ...known.filter((one) => one !== figure)];
    const show = () => {
      rw.surface.forget(room);
      room.replaceChildren();
      const cell = h("div", { class: "cell whole" });
      const grid = h("div", { class: "charts" }, cell);
      const spec = lines(sweep, figure, key);
      const drawn = rw.chart.create(cell, spec);
      room.append(chooser(spec, drawn) || "", grid);
      maps(grid, sweep, figure);
    };
    parent.append(h("p", { class: "picks" },
      select("Figure", order.map((one) => one.label), (i) => { figure = order[i]; show(); }),
      keys.length > 1 ? select("Over", keys.map((one) => one.label), (i) => { key = keys[i]; show(); }) : null), room);
    show();
    parent.append(table(sweep, known));
  }

  rw.sweep = { draw };
})((window.Ropewalk = window.Ropewalk || {}));
