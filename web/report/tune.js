// Window limits: predicted throughput, limits per path, simulated results, and the curves.
(function (rw) {
  "use strict";
  const { h } = rw.dom;
  const { value } = rw.format;

  function tile(label, [text, unit], below) {
    return h("div", { class: "tile" },
      h("dt", null, label),
      h("dd", null, h("span", { class: "figure" }, text), unit ? h("span", { class: "unit" }, unit) : null,
        below ? h("p", { class: "note" }, below) : null));
  }

  const figure = (number, kind) => Object.values(rw.format.parts(number, kind));
  const gain = (now, before) => rw.format.difference(before ? now / before - 1 : null);
  const interval = (e, kind) => (e ? value(e.mean, kind) + (e.half_width === null ? "" : ` ± ${value(e.half_width, kind)}`) : rw.format.NONE);

  function tiles(tuning) {
    const share = `${value(tuning.predicted_bps / tuning.rates_bps, "ratio")} of the sum of the rates`;
    const list = [
      tile("Promised with limits", figure(tuning.predicted_bps, "rate"), share),
      tile("Against an equal split", [gain(tuning.predicted_bps, tuning.equal_split.predicted_bps), ""], value(tuning.equal_split.predicted_bps, "rate")),
      tile("Receive buffer", figure(tuning.receive_buffer_bytes, "bytes"), `${tuning.buffer_packets} packets`),
    ];
    const simulated = tuning.simulated_bps;
    if (simulated) {
      const of = `goodput; ${value(simulated.mean / (tuning.predicted_bps * tuning.payload_share), "ratio")} of what was promised`;
      list.push(tile("Simulated with limits", figure(simulated.mean, "rate"), of));
    } else if (tuning.reach && tuning.reach.least) {
      const { least, share: part, simulated: found } = tuning.reach;
      const best = found ? found.least : least;
      const model = found ? `, simulated; the models say ${value(least.receive_buffer_bytes, "bytes")}` : "";
      list.push(tile("Least buffer", best ? figure(best.receive_buffer_bytes, "bytes") : [rw.format.NONE, ""],
        `for ${value(part, "ratio")} of the rates${model}`));
    } else {
      list.push(tile("If nothing were shared", figure(tuning.unlimited_bps, "rate"), "each path with the whole buffer"));
    }
    return h("dl", { class: "tiles", "aria-label": "Headline figures" }, list);
  }

  function table(caption, heads, rows) {
    const cell = (text, i) => h("td", { class: "num", role: "cell", "data-label": heads[i + 1] }, text);
    return h("div", { class: "scroll" },
      h("table", { class: "rows", role: "table" },
        h("caption", null, caption),
        h("thead", { role: "rowgroup" }, h("tr", { role: "row" },
          heads.map((text, i) => h("th", { scope: "col", role: "columnheader", class: i ? "num" : null }, text)))),
        h("tbody", { role: "rowgroup" }, rows.map(([name, ...cells]) => h("tr", { role: "row" },
          h("th", { scope: "row", role: "rowheader" }, name), cells.map(cell))))));
  }

  function paths(tuning) {
    const rows = tuning.paths.map((p) => [
      p.name, value(p.rate_bps, "rate"), value(p.round_trip_s, "time"), value(p.loss, "ratio"),
      `${p.limit_packets} packets`, `${p.useful_packets} packets`, value(p.predicted_bps, "rate"), p.pays ? "pays off" : "leave it out",
    ]);
    return table("Limits of the windows", ["Path", "Rate", "Round trip", "Loss", "Limit", "Of use", "Promised", "Verdict"], rows);
  }

  function managers(check) {
    const rows = check.managers.map((m) => [
      m.window_manager, m.error || interval(m.goodput_bps, "rate"),
      m.gain ? `${rw.format.difference(m.gain.mean - 1)}${m.gain.half_width === null ? "" : ` ± ${rw.format.difference(m.gain.half_width).replace("+", "")}`}` : rw.format.NONE,
    ]);
    return table(`In simulation, ${check.seeds} run(s) of each`, ["Window manager", "Goodput", "Gain over none"], rows);
  }

  /** Draws the document `tuning` of a report, with its figures and surfaces, into `parent`. */
  function draw(parent, report) {
    const { tuning } = report;
    parent.append(tiles(tuning), h("section", { class: "limits" }, paths(tuning), tuning.check ? managers(tuning.check) : null));
    if (tuning.notes.length) parent.append(h("ul", { class: "note" }, tuning.notes.map((note) => h("li", null, note))));
    if (report.figures.length) rw.figures.draw(parent, report.figures);
    const grid = h("div", { class: "charts figures" });
    parent.append(grid);
    for (const surface of report.surfaces) {
      const cell = h("div", { class: "cell whole", id: rw.dom.anchor(`surface ${surface.id}`) });
      grid.append(cell);
      rw.surface.create(cell, surface);
    }
  }

  rw.tune = { draw };
})((window.Ropewalk = window.Ropewalk || {}));
