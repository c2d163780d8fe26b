// The headline figures at the top: of the one run, or the best of all runs.
(function (rw) {
  "use strict";
  const { h } = rw.dom;
  const { at, best } = rw.metrics;

  // Below this utilisation a path counts as idle.
  const IDLE = 0.1;

  // A full gauge must not look like success where a link is idle: then it has the colour of a warning.
  function gauge(share, idle) {
    if (!rw.format.isNumber(share)) return null;
    const width = `width: ${(100 * Math.min(1, Math.max(0, share))).toFixed(1)}%`;
    return h("div", { class: idle ? "gauge idle" : "gauge", "aria-hidden": "true" }, h("span", { style: width }));
  }

  function tile(metric, value, below, idle) {
    const { text, unit } = rw.format.parts(value, metric.kind);
    return h("div", { class: "tile" },
      h("dt", { title: metric.means }, metric.label),
      h("dd", null,
        h("span", { class: "figure" }, text), unit ? h("span", { class: "unit" }, unit) : null,
        metric.path === "share_of_bound" ? gauge(value, idle) : null,
        below ? h("p", { class: "note" }, below) : null));
  }

  // The note beside each headline figure of a single run.
  const BESIDE = {
    goodput_bps: ["flow_control_bound_bps", "rate", "flow-control bound"],
    "receive_buffer.max_bytes": ["receive_buffer.mean_bytes", "bytes", "mean"],
    "app_delay_s.p99": ["app_delay_s.p50", "time", "median"],
  };

  // The path of several that carries least of its rate, if it is idle.
  function idlePath(result) {
    const paths = (result && result.paths) || [];
    if (paths.length < 2) return null;
    const known = paths.filter((path) => rw.format.isNumber(path.utilisation) && path.utilisation < IDLE);
    return known.sort((a, b) => a.utilisation - b.utilisation)[0] || null;
  }

  function beside(metric, result, idle) {
    if (metric.path === "share_of_bound" && idle) {
      return `of what windows and buffer allow, which leave ${idle.name} idle: ${rw.format.value(idle.utilisation, "ratio")} of its rate`;
    }
    if (metric.path === "share_of_bound") {
      const above = at(result, metric.path) >= 1.0005;
      return above ? "above 100 %: some acknowledgements returned on a faster path" : "of what windows and buffer allow";
    }
    const [path, kind, word] = BESIDE[metric.path];
    const value = at(result, path);
    return value === null ? null : `${word} ${rw.format.value(value, kind)}`;
  }

  function ofOne(run) {
    const idle = idlePath(run.result);
    return rw.metrics.headline.map((m) => tile(m, at(run.result, m.path), beside(m, run.result, idle), idle));
  }

  // The best value, and the label of the run that has it. Others whose intervals overlap with its own are as good, as far
  // as these seeds show.
  function bestTile(metric, labels, values, halves) {
    const winner = best(values, metric.better).indexOf(true);
    if (winner < 0) return tile(metric, values[0], labels.length > 1 ? "the same in all runs" : null);
    const half = (i) => (halves && rw.format.isNumber(halves[i]) ? halves[i] : 0);
    const same = (v, i) => rw.format.isNumber(v) && i !== winner && Math.abs(v - values[winner]) <= half(i) + half(winner);
    const others = labels.filter((_, i) => halves && same(values[i], i));
    return tile(metric, values[winner], others.length ? `${labels[winner]}; ${others.join(", ")} within the intervals` : `best: ${labels[winner]}`);
  }

  function ofMany(runs) {
    return rw.metrics.headline.map((m) => bestTile(m, runs.map((r) => r.label), runs.map((r) => at(r.result, m.path))));
  }

  // Means over all seeds, with half of the interval.
  function ofSummary(summary) {
    return rw.metrics.headline.map((m) => {
      const estimates = summary.map((one) => one[m.column]);
      if (summary.length > 1) return bestTile(m, summary.map((one) => one.label), estimates.map((e) => (e ? e.mean : null)), estimates.map((e) => (e ? e.half_width : null)));
      const [only] = estimates;
      const half = only && rw.format.isNumber(only.half_width) ? only.half_width > 0
        ? `± ${rw.format.value(Number(only.half_width.toPrecision(2)), m.kind)}, mean of ${summary[0].runs} seeds`
        : `the same with all ${summary[0].runs} seeds` : null;
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
