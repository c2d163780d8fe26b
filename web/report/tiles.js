// The headline figures at the top: of the one run, or the best of all runs.
(function (rw) {
  "use strict";
  const { h } = rw.dom;
  const { at, best } = rw.metrics;

  function gauge(share) {
    if (!rw.format.isNumber(share)) return null;
    const width = `width: ${(100 * Math.min(1, Math.max(0, share))).toFixed(1)}%`;
    return h("div", { class: "gauge", "aria-hidden": "true" }, h("span", { style: width }));
  }

  function tile(metric, value, below) {
    const { text, unit } = rw.format.parts(value, metric.kind);
    return h("div", { class: "tile" },
      h("dt", { title: metric.means }, metric.label),
      h("dd", null,
        h("span", { class: "figure" }, text), unit ? h("span", { class: "unit" }, unit) : null,
        metric.path === "share_of_bound" ? gauge(value) : null,
        below ? h("p", { class: "note" }, below) : null));
  }

  // The note beside each headline figure of a single run.
  const BESIDE = {
    goodput_bps: ["flow_control_bound_bps", "rate", "flow-control bound"],
    "receive_buffer.max_bytes": ["receive_buffer.mean_bytes", "bytes", "mean"],
    "app_delay_s.p99": ["app_delay_s.p50", "time", "median"],
  };

  function beside(metric, result) {
    if (metric.path === "share_of_bound") {
      const above = at(result, metric.path) >= 1.0005;
      return above ? "above 100 %: some acknowledgements returned on a faster path" : "of what windows and buffer allow";
    }
    const [path, kind, word] = BESIDE[metric.path];
    const value = at(result, path);
    return value === null ? null : `${word} ${rw.format.value(value, kind)}`;
  }

  function ofOne(run) {
    return rw.metrics.headline.map((m) => tile(m, at(run.result, m.path), beside(m, run.result)));
  }

  // The best value, and the label of the run that has it.
  function bestTile(metric, labels, values) {
    const winner = best(values, metric.better).indexOf(true);
    if (winner < 0) return tile(metric, values[0], labels.length > 1 ? "the same in all runs" : null);
    return tile(metric, values[winner], `best: ${labels[winner]}`);
  }

  function ofMany(runs) {
    return rw.metrics.headline.map((m) => bestTile(m, runs.map((r) => r.label), runs.map((r) => at(r.result, m.path))));
  }

  // Means over all seeds, with half of the interval.
  function ofSummary(summary) {
    return rw.metrics.headline.map((m) => {
      const estimates = summary.map((one) => one[m.column]);
      if (summary.length > 1) return bestTile(m, summary.map((one) => one.label), estimates.map((e) => (e ? e.mean : null)));
      const [only] = estimates;
      const half = only && rw.format.isNumber(only.half_width) ? `± ${rw.format.value(only.half_width, m.kind)}, mean of ${summary[0].runs} seeds` : null;
      return tile(m, only ? only.mean : null, half);
    });
  }

  /** The row of tiles, or null when there is no run. */
  function headline(report) {
    const { runs, summary } = report;
    if (!runs.length) return null;
    const tiles = report.repeats.length ? ofSummary(summary) : runs.length === 1 ? ofOne(runs[0]) : ofMany(runs);
    return h("dl", { class: "tiles", "aria-label": "Headline figures" }, tiles);
  }

  rw.tiles = { headline };
})((window.Ropewalk = window.Ropewalk || {}));
