// Several runs: side by side in a table, overlaid in charts, and each of them in full.
(function (rw) {
  "use strict";
  const { h, svg } = rw.dom;
  // Number of lines shown at first: more would hide each other; the reader can switch on the rest.
  const SHOWN_AT_FIRST = 6;
  // More bands than this would hide each other.
  const BANDS = 2;
  // Delays that differ by more than this factor are drawn on a logarithmic axis.
  const WIDE = 30;

  const OVERLAYS = [
    { key: "goodput_bps", title: "Goodput", label: "Rate", kind: "rate", wide: true },
    { key: "receive_buffer_bytes", peak: "receive_buffer_peak_bytes", title: "Receive buffer occupancy", label: "Bytes", kind: "bytes" },
  ];

  // The place of each run by goodput: the best runs, which are shown at first, have colours of their own.
  let places = new Map();

  function rank(runs) {
    const goodput = (run) => rw.metrics.at(run.result, "goodput_bps") ?? -Infinity;
    const order = runs.map((_, i) => i).sort((a, b) => goodput(runs[b]) - goodput(runs[a]));
    places = new Map(order.map((index, place) => [names(runs)[index], place]));
  }

  const look = (label) => rw.paint.look(places.get(label) ?? 0);

  // The line of a series as it appears in charts.
  function sample({ colour, dash }) {
    return svg("svg", { class: "mark", viewBox: "0 0 26 14", width: 26, height: 14, "aria-hidden": "true", fill: "none" },
      svg("path", { d: "M1 7h24", style: `stroke: var(${colour})`, "stroke-width": 2.5, "stroke-dasharray": dash.join(" ") || null }));
  }

  // Labels may repeat; a series is addressed by its name, so a repeated one gets its number.
  function names(runs) {
    return runs.map((run, i) => (runs.findIndex((r) => r.label === run.label) === i ? run.label : `${run.label} #${i + 1}`));
  }

  /** The indices of the runs with the highest goodput: they are the ones shown at first. */
  const bestRuns = (labels) => new Set(labels.flatMap((label, i) => (places.get(label) < SHOWN_AT_FIRST ? [i] : [])));

  // One curve: means over intervals, and a band up to the peaks while few bands are shown.
  function curve(kind, run, count, banded) {
    const series = run.series || {};
    const values = series[kind.key] || [];
    const x = count === 1 ? series.time_s : rw.bins.ends(series.time_s, count);
    const means = count === 1 ? values : rw.bins.means(values, count);
    if (!kind.peak || !banded) return [x, means, {}];
    const { low } = rw.bins.extremes(values, count);
    const { high } = rw.bins.extremes(series[kind.peak] || values, count);
    return [x, means, { low, high }];
  }

  function overlay(kind, runs, labels, shown) {
    const count = rw.bins.samples(runs);
    const banded = kind.peak && runs.length <= BANDS;
    const peaks = kind.peak && !banded;
    const drawn = runs.map((run, i) => {
      const [x, means, band] = curve(kind, run, count, banded);
      const y = peaks ? rw.bins.extremes((run.series || {})[kind.peak] || (run.series || {})[kind.key], count).high : means;
      return rw.run.line(labels[i], x, y, { ...look(labels[i]), ...band, hidden: !shown.has(i) });
    });
    const note = peaks ? rw.bins.note(runs, count).replace("the mean", "the maximum") : rw.bins.note(runs, count, banded);
    return {
      title: kind.title,
      note,
      x: { label: "Time", kind: "time", tight: true },
      y: { label: kind.label, kind: kind.kind, fromZero: true },
      series: drawn,
      sync: { key: "compare", zoom: true },
    };
  }

  // The distribution of the delay in each run.
  function delays(runs, labels, shown) {
    const all = runs.flatMap((run) => ((run.distributions || {}).app_delay_s || {}).values || []).filter((v) => v > 0);
    const wide = all.length > 0 && Math.max(...all) > WIDE * Math.min(...all);
    return {
      title: "Distribution of the delay",
      note: "The share of packets with at most this time from the first transmission to in-order delivery.",
      x: { label: "Delay", kind: "time", log: wide },
      y: { label: "Share of packets", kind: "ratio", fromZero: true },
      series: runs.map((run, i) => {
        const found = (run.distributions || {}).app_delay_s || {};
        return rw.run.line(labels[i], found.values, found.shares, { ...look(labels[i]), style: "step", hidden: !shown.has(i) });
      }),
    };
  }

  function chooser(labels, shown, toggle) {
    const boxes = labels.map((label, i) => h("label", { class: "choice" },
      h("input", { type: "checkbox", checked: shown.has(i), onchange: (event) => toggle(label, event.target.checked) }),
      sample(look(label)), label));
    const title = labels.length > SHOWN_AT_FIRST ? `Runs in these charts, at first the ${SHOWN_AT_FIRST} with the highest goodput` : "Runs in these charts";
    return h("fieldset", { class: "chooser" }, h("legend", null, title), boxes);
  }

  function overlays(parent, runs) {
    const labels = names(runs);
    const shown = bestRuns(labels);
    const drawn = [];
    parent.append(chooser(labels, shown, (label, on) => drawn.forEach((chart) => chart.toggle(label, on))));
    const grid = h("div", { class: "charts" });
    parent.append(grid);
    const specs = [...OVERLAYS.map((kind) => [kind.wide, overlay(kind, runs, labels, shown)]), [false, delays(runs, labels, shown)]];
    for (const [wide, spec] of specs) {
      const cell = h("div", { class: wide ? "cell whole" : "cell" });
      grid.append(cell);
      drawn.push(rw.chart.create(cell, spec));
    }
  }

  // Only the chosen run is drawn: five charts for each of a dozen runs would be slow and long.
  function oneInFull(parent, runs) {
    const labels = names(runs);
    const room = h("div", { class: "one-run" });
    let drawn = [];
    const show = (index) => {
      drawn.forEach((chart) => chart.destroy());
      room.replaceChildren();
      drawn = rw.run.draw(room, runs[index]);
    };
    const select = h("select", { onchange: (event) => show(Number(event.target.value)) },
      labels.map((label, i) => h("option", { value: i }, label)));
    parent.append(h("label", { class: "pick" }, "Run ", select), room);
    show(0);
  }

  const CHANGES = [["Goodput", "goodput"], ["Mean delay", "app_delay_mean"], ["Delay, p99", "app_delay_p99"], ["Peak buffer", "receive_buffer_max"]];

  function change(one) {
    const percent = (share) => `${share < 0 ? "\u2212" : "+"}${Math.abs(100 * share).toFixed(1)}`;
    if (!one) return h("td", { class: "num" }, rw.format.NONE);
    const known = rw.format.isNumber(one.low);
    const sure = known && (one.low > 0 || one.high < 0);
    return h("td", { class: "num" }, sure ? h("strong", null, `${percent(one.mean)}\u202f%`) : `${percent(one.mean)}\u202f%`,
      known ? h("span", { class: "unit" }, `${percent(one.low)} to ${percent(one.high)}`) : null);
  }

  // Each run compared with a reference, seed by seed.
  function pairedTable(pairs) {
    const caption = `Beside ${pairs[0].reference}, seed by seed`;
    const heads = ["Run", "Pairs", ...CHANGES.map(([label]) => label)];
    return [rw.dom.scroller(caption,
      h("table", { class: "wide paired" }, h("caption", null, caption),
        h("thead", null, h("tr", null, heads.map((label, i) => h("th", { scope: "col", class: i ? "num" : null }, label)))),
        h("tbody", null, pairs.map((pair) => h("tr", null, h("th", { scope: "row" }, pair.label), h("td", { class: "num" }, String(pair.pairs)),
          CHANGES.map(([, name]) => change(pair[name]))))))),
    h("p", { class: "note" }, "Mean change of the same seed with its 95 % interval. Bold: the interval excludes 0.")];
  }

  // "seed 1", if there are several seeds: time series exist for the first one only.
  function seedNote(report) {
    if (!report.repeats.length) return null;
    const seeds = [...new Set(report.runs.map((run) => String(run.seed)))];
    return h("p", { class: "note" }, `Time series and distributions: seed ${seeds.join(", ")} only.`);
  }

  /** Draws all runs of `report` into `parent`: over all seeds if there are several, and over time. */
  function draw(parent, report) {
    const { runs } = report;
    rank(runs);
    const labels = names(runs);
    const pairs = report.paired || [];
    if (report.repeats.length) rw.seeds.draw(parent, report);
    else {
      parent.append(
        rw.tables.comparison(runs, (run, i) => sample(look(labels[i]))),
        h("p", { class: "note" }, "The best of each column is marked. A click on a heading sorts."));
    }
    parent.append(...(pairs.length ? pairedTable(pairs) : []));
    const over = h("section", { "aria-labelledby": "overlays" }, h("h2", { id: "overlays" }, "Runs over time"), seedNote(report));
    const one = h("section", { "aria-labelledby": "one-run" }, h("h2", { id: "one-run" }, "One run in full"));
    parent.append(over, one);
    overlays(over, runs);
    oneInFull(one, runs);
  }

  rw.compare = { draw, sample, look };
})((window.Ropewalk = window.Ropewalk || {}));
