// The text alternative of a chart: the ranges of its series, as one sentence and as a table.
(function (rw) {
  "use strict";
  const { h } = rw.dom;
  const { isNumber } = rw.format;

  /** Count, minimum, mean, maximum and last of the finite y values. The mean is over samples, not over time. */
  function measure(series) {
    const ys = series.y.filter(isNumber);
    if (!ys.length) return { count: 0, min: null, mean: null, max: null, last: null };
    let min = Infinity;
    let max = -Infinity;
    let sum = 0;
    for (const y of ys) {
      min = Math.min(min, y);
      max = Math.max(max, y);
      sum += y;
    }
    return { count: ys.length, min, mean: sum / ys.length, max, last: ys[ys.length - 1] };
  }

  function name(series) {
    return series.tag ? `${series.name} (${series.tag})` : series.name;
  }

  function show(value, spec) {
    return rw.format.value(value, spec.y.kind || "number");
  }

  /** "Throughput. wifi: 20 points, from 0.1 to 1 Mbit/s, mean 0.9 Mbit/s; …" */
  function sentence(spec) {
    const parts = spec.series.map((series) => {
      const m = measure(series);
      if (!m.count) return `${name(series)}: no values`;
      return `${name(series)}: ${m.count} points from ${show(m.min, spec)} to ${show(m.max, spec)}, mean ${show(m.mean, spec)}`;
    });
    return `${spec.title}, ${spec.y.label} over ${spec.x.label}. ${parts.join("; ")}.`;
  }

  function row(series, spec) {
    const m = measure(series);
    const cells = [m.min, m.mean, m.max, m.last].map((v) => h("td", { class: "num" }, show(v, spec)));
    return h("tr", null, h("th", { scope: "row" }, name(series)), h("td", { class: "num" }, String(m.count)), cells);
  }

  /** The same as a folded table. */
  function table(spec) {
    const heads = ["Points", "Minimum", "Mean", "Maximum", "Last"];
    return h("details", { class: "numbers" },
      h("summary", null, "In numbers"),
      h("div", { class: "scroll" },
        h("table", null,
          h("caption", { class: "hidden" }, `${spec.title}: minimum, mean, maximum and last value of each series`),
          h("thead", null, h("tr", null,
            h("th", { scope: "col" }, "Series"),
            heads.map((text) => h("th", { scope: "col", class: "num" }, text)))),
          h("tbody", null, spec.series.map((series) => row(series, spec))))));
  }

  rw.summary = { measure, sentence, table };
})((window.Ropewalk = window.Ropewalk || {}));
