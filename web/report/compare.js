// Several runs: side by side in a table, overlaid in charts, and each of them in full.
(function (rw) {
  "use strict";
  const { h, svg } = rw.dom;
  // Number of lines shown at first: more would hide each other; the reader can switch on the rest.
  const SHOWN_AT_FIRST = 6;

  const OVERLAYS = [
    { key: "goodput_bps", title: "Goodput", label: "Rate", kind: "rate", wide: true, means: true },
    { key: "receive_buffer_bytes", title: "Receive buffer occupancy", label: "Bytes", kind: "bytes", means: true },
    { key: "delivered_bytes", title: "Delivered in order", label: "Bytes", kind: "bytes" },
  ];

  function key(index) {
    const { colour, dash } = rw.paint.look(index);
    return svg("svg", { class: "mark", viewBox: "0 0 26 14", width: 26, height: 14, "aria-hidden": "true", fill: "none" },
      svg("path", { d: "M1 7h24", style: `stroke: var(${colour})`, "stroke-width": 2.5, "stroke-dasharray": dash.join(" ") || null }));
  }

  // Labels may repeat; a series is addressed by its name, so a repeated one gets its number.
  function names(runs) {
    return runs.map((run, i) => (runs.findIndex((r) => r.label === run.label) === i ? run.label : `${run.label} #${i + 1}`));
  }

  function overlay(kind, runs, labels) {
    const count = kind.means ? rw.bins.samples(runs) : 1;
    const drawn = (run) => {
      const series = run.series || {};
      if (count === 1) return [series.time_s, series[kind.key]];
      return [rw.bins.ends(series.time_s, count), rw.bins.means(series[kind.key], count)];
    };
    return {
      title: kind.title,
      note: kind.means ? rw.bins.note(runs, count) : null,
      x: { label: "Time", kind: "time", tight: true },
      y: { label: kind.label, kind: kind.kind, fromZero: true },
      series: runs.map((run, i) => rw.run.line(labels[i], ...drawn(run), { ...rw.paint.look(i), hidden: i >= SHOWN_AT_FIRST })),
      sync: { key: "compare", zoom: true },
    };
  }

  function chooser(labels, toggle) {
    const boxes = labels.map((label, i) => h("label", { class: "choice" },
      h("input", { type: "checkbox", checked: i < SHOWN_AT_FIRST, onchange: (event) => toggle(label, event.target.checked) }),
      key(i), label));
    return h("fieldset", { class: "chooser" }, h("legend", null, "Runs in these charts"), boxes);
  }

  function overlays(parent, runs) {
    const labels = names(runs);
    const drawn = [];
    parent.append(chooser(labels, (label, on) => drawn.forEach((chart) => chart.toggle(label, on))));
    const grid = h("div", { class: "charts" });
    parent.append(grid);
    for (const kind of OVERLAYS) {
      const cell = h("div", { class: kind.wide ? "cell whole" : "cell" });
      grid.append(cell);
      drawn.push(rw.chart.create(cell, overlay(kind, runs, labels)));
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
    return [h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
      h("table", { class: "wide paired" }, h("caption", null, caption),
        h("thead", null, h("tr", null, ["Run", "Pairs", ...CHANGES.map(([label]) => label)].map((label, i) => h("th", { scope: "col", class: i ? "num" : null }, label)))),
        h("tbody", null, pairs.map((pair) => h("tr", null, h("th", { scope: "row" }, pair.label), h("td", { class: "num" }, String(pair.pairs)),
          CHANGES.map(([, name]) => change(pair[name]))))))),
    h("p", { class: "note" }, "Mean change of the same seed with its 95 % interval. Bold: the interval excludes 0.")];
  }

  /** Draws all of `runs` into `parent`, with `pairs`, the differences seed by seed, if there are any. */
  function draw(parent, runs, pairs) {
    parent.append(
      rw.tables.comparison(runs, (run, i) => key(i)),
      h("p", { class: "note" }, "The best of each column is marked. A click on a heading sorts."),
      ...(pairs.length ? pairedTable(pairs) : []));
    const over = h("section", { "aria-labelledby": "overlays" }, h("h2", { id: "overlays" }, "Runs over time"));
    const one = h("section", { "aria-labelledby": "one-run" }, h("h2", { id: "one-run" }, "One run in full"));
    parent.append(over, one);
    overlays(over, runs);
    oneInFull(one, runs);
  }

  rw.compare = { draw };
})((window.Ropewalk = window.Ropewalk || {}));
