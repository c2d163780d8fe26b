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

  // What belongs beside each headline figure of a single run.
  const BESIDE = {
    goodput_bps: ["flow_control_bound_bps", "rate", "flow-control bound"],
    "receive_buffer.max_bytes": ["receive_buffer.mean_bytes", "bytes", "mean"],
    "app_delay_s.p99": ["app_delay_s.p50", "time", "median"],
  };

  function beside(metric, result) {
    if (metric.path === "share_of_bound") return "of what windows and buffer allow";
    const [path, kind, word] = BESIDE[metric.path];
    const value = at(result, path);
    return value === null ? null : `${word} ${rw.format.value(value, kind)}`;
  }

  function ofOne(run) {
    return rw.metrics.headline.map((m) => tile(m, at(run.result, m.path), beside(m, run.result)));
  }

  function ofMany(runs) {
    return rw.metrics.headline.map((m) => {
      const values = runs.map((r) => at(r.result, m.path));
      const winner = best(values, m.better).indexOf(true);
      if (winner < 0) return tile(m, values[0], "the same in all runs");
      return tile(m, values[winner], `best: ${runs[winner].label}`);
    });
  }

  /** The row of tiles, or null when there is no run. */
  function headline(runs) {
    if (!runs.length) return null;
    return h("dl", { class: "tiles", "aria-label": "Headline figures" }, runs.length === 1 ? ofOne(runs[0]) : ofMany(runs));
  }

  rw.tiles = { headline };
})((window.Ropewalk = window.Ropewalk || {}));
