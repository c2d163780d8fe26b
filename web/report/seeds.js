// Runs with several seeds: means with intervals in a table, and every seed as a dot in a chart.
(function (rw) {
  "use strict";
  const { h } = rw.dom;
  const { isNumber } = rw.format;

  // More seeds than this are numbered on the axis instead of named.
  const NAMED_SEEDS = 12;

  // The figures of a comparison, and the gain over the best path if it was computed.
  function figures(summary) {
    // The share of the time says the same as the time itself, which depends on the length of the run.
    const known = rw.vocabulary.run.filter((figure) => figure.compare && figure.column !== "blocked_s");
    const gain = { label: "Of the best path", kind: "ratio", better: "high", column: "gain", means: "Goodput over that of the best path alone." };
    const all = summary.some((one) => one.gain) ? [known[0], gain, ...known.slice(1)] : known;
    return all.filter((figure) => summary.some((one) => one[figure.column]));
  }

  const mean = (one, figure) => (one[figure.column] ? one[figure.column].mean : null);

  function column(summary, figure, scales) {
    const values = summary.map((one) => mean(one, figure));
    const kind = figure.kind === "count" ? "number" : figure.kind;
    const halves = summary.map((one) => one[figure.column] && one[figure.column].half_width);
    const { unit, factor, decimals } = rw.format.column(values, kind, scales, halves);
    const wins = rw.metrics.best(values, figure.better);
    const cells = summary.map((one, i) => {
      const estimate = one[figure.column];
      if (!estimate) return h("td", { class: "num" }, rw.format.NONE);
      const half = isNumber(estimate.half_width) ? h("span", { class: "half" }, ` ± ${estimate.half_width > 0 ? rw.format.fixed(estimate.half_width / factor, decimals) : 0}`) : null;
      return h("td", { class: wins[i] ? "num best" : "num" }, rw.format.fixed(estimate.mean / factor, decimals), half,
        wins[i] ? h("span", { class: "hidden" }, " (best)") : null);
    });
    return { head: [figure.label, unit ? h("span", { class: "unit" }, unit) : null], cells };
  }

  function table(report) {
    const { summary } = report;
    const shown = figures(summary);
    const kind = (figure) => (figure.kind === "count" ? "number" : figure.kind);
    const scales = rw.format.shared(shown.map((figure) => [kind(figure), summary.map((one) => mean(one, figure))]));
    const columns = shown.map((figure) => column(summary, figure, scales));
    const caption = "Means over all seeds";
    return rw.dom.scroller(caption, h("table", { class: "wide comparison" },
      h("caption", null, caption),
      h("thead", null, h("tr", null, h("th", { scope: "col" }, "Run"), h("th", { scope: "col", class: "num" }, "Seeds"),
        columns.map((c, i) => h("th", { scope: "col", class: "num", title: shown[i].means || null }, c.head)))),
      h("tbody", null, summary.map((one, i) => h("tr", null,
        h("th", { scope: "row" }, h("span", { class: "run-name" }, rw.compare.sample(rw.compare.look(one.label)), h("span", null, one.label))),
        h("td", { class: "num" }, String(one.runs)), columns.map((c) => c.cells[i]))))));
  }

  // Whether the seeds of any variant differ in any figure.
  function isRandom(summary, shown) {
    const halves = summary.flatMap((one) => shown.map((figure) => one[figure.column] && one[figure.column].half_width));
    return halves.some((half) => half !== 0 && isNumber(half)) || !halves.some(isNumber);
  }

  // Mean with whiskers, and a dot for each seed.
  function spread(report, figure) {
    const labels = report.summary.map((one) => one.label);
    const estimates = report.summary.map((one) => one[figure.column] || {});
    const ends = (sign) => estimates.map((e) => (isNumber(e.half_width) ? e.mean + sign * e.half_width : null));
    const seeds = report.repeats.filter((one) => labels.includes(one.label) && isNumber(one[figure.column]));
    return {
      title: figure.label,
      note: "Bar: mean over the seeds, with its 95 % confidence interval. Dots: single seeds.",
      x: { label: "" },
      y: { label: figure.label, kind: figure.kind === "count" ? "number" : figure.kind, fromZero: true },
      series: [
        { name: "mean", x: labels, y: estimates.map((e) => e.mean ?? null), style: "bars", hollow: true, colour: "--series-1", low: ends(-1), high: ends(1), whiskers: true },
        { name: "seeds", x: seeds.map((one) => one.label), y: seeds.map((one) => one[figure.column]), style: "points", colour: "--ink", hollow: true, size: 5 },
      ],
      height: 300,
    };
  }

  // The seeds of a single variant beside each other, with their mean.
  function ofOne(report, figure) {
    const estimate = report.summary[0][figure.column] || {};
    const known = report.repeats.filter((one) => isNumber(one[figure.column]));
    const few = known.length <= NAMED_SEEDS;
    const xs = known.map((one, i) => (few ? String(one.seed) : i + 1));
    const flat = (value) => xs.map(() => (isNumber(value) ? value : null));
    const half = isNumber(estimate.half_width) ? estimate.half_width : null;
    return {
      title: figure.label,
      note: "Dots: single runs. Line and band: their mean with its 95 % confidence interval.",
      x: { label: few ? "Seed" : "Run, by seed", kind: "number" },
      y: { label: figure.label, kind: figure.kind === "count" ? "number" : figure.kind },
      series: [
        { name: "mean", x: xs, y: flat(estimate.mean), style: "line", colour: "--series-1", low: flat(half === null ? null : estimate.mean - half), high: flat(half === null ? null : estimate.mean + half) },
        { name: "seeds", x: xs, y: known.map((one) => one[figure.column]), style: "points", colour: "--series-1", size: 7 },
      ],
      height: 240,
    };
  }

  const SPREADS = ["goodput_bps", "app_delay_p99_s", "receive_buffer_max_bytes", "app_delay_mean_s"];

  /** Draws the summary and every seed of `report` into `parent`. */
  function draw(parent, report) {
    const known = figures(report.summary);
    const meaning = isRandom(report.summary, known)
      ? "± is half of a 95 % confidence interval of the mean."
      : "± 0: all seeds gave the same figures, because nothing in the scenario is random.";
    parent.append(table(report), h("p", { class: "note" }, `${meaning} The best mean of each column is marked.`));
    const grid = h("div", { class: "charts" });
    parent.append(h("section", { "aria-labelledby": "seeds" }, h("h2", { id: "seeds" }, "Every seed"), grid));
    for (const name of SPREADS) {
      const figure = known.find((one) => one.column === name);
      if (!figure) continue;
      const cell = h("div", { class: "cell" });
      grid.append(cell);
      rw.chart.create(cell, report.summary.length === 1 ? ofOne(report, figure) : spread(report, figure));
    }
  }

  rw.seeds = { draw };
})((window.Ropewalk = window.Ropewalk || {}));
