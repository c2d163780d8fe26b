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
  // Means with half of their intervals, in one unit.
  function intervals(estimates, kind) {
    const { unit, factor, decimals } = rw.format.column(estimates.map((e) => (e ? e.mean : null)), kind);
    const show = (v) => rw.format.fixed(v / factor, decimals);
    return estimates.map((e) => (e ? `${show(e.mean)}${e.half_width > 0 ? ` ± ${show(e.half_width)}` : ""}\u202f${unit}` : rw.format.NONE));
  }

  function tiles(tuning) {
    const share = `${value(tuning.predicted_bps / tuning.rates_bps, "ratio")} of the sum of the rates`;
    const list = [
      tile("Predicted with limits", figure(tuning.predicted_bps, "rate"), share),
      tile("Against an equal split", [gain(tuning.predicted_bps, tuning.equal_split.predicted_bps), ""], value(tuning.equal_split.predicted_bps, "rate")),
      tile("Receive buffer", figure(tuning.receive_buffer_bytes, "bytes"), `${tuning.buffer_packets} packets`),
    ];
    const found = tuning.reach && tuning.reach.simulated;
    const robust = found && found.robust;
    if (robust) {
      const best = robust.least;
      const links = `in all ${robust.variations} variations of the links, up to ${value(robust.tolerance, "ratio")} off`;
      const exact = found.least ? `; exactly these links need ${value(found.least.receive_buffer_bytes, "bytes")}` : "";
      list.unshift(tile("Receive buffer to use", best ? figure(best.receive_buffer_bytes, "bytes") : [rw.format.NONE, ""],
        `${value(tuning.reach.share, "ratio")} of the rates ${links}${exact}; with ${tuning.scheduler}, preset ${tuning.preset}`));
    }
    const simulated = tuning.simulated_bps;
    if (simulated) {
      const of = `goodput; ${value(simulated.mean / (tuning.predicted_bps * tuning.payload_share), "ratio")} of the prediction`;
      list.push(tile("Simulated with limits", figure(simulated.mean, "rate"), of));
    } else if (!robust && tuning.reach && tuning.reach.least) {
      const { least, share: part } = tuning.reach;
      const best = found ? found.least : least;
      const model = found ? `, simulated; the models say ${value(least.receive_buffer_bytes, "bytes")}` : "";
      list.push(tile("Smallest buffer", best ? figure(best.receive_buffer_bytes, "bytes") : [rw.format.NONE, ""],
        `for ${value(part, "ratio")} of the rates${model}`));
    } else {
      list.push(tile("If paths shared no buffer", figure(tuning.unlimited_bps, "rate"), "each path with the whole buffer"));
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
    return table("Limits of the windows", ["Path", "Rate", "Round trip", "Loss", "Limit", "Largest useful", "Predicted", "Verdict"], rows);
  }

  function managers(check) {
    const goodputs = intervals(check.managers.map((m) => m.goodput_bps), "rate");
    const rows = check.managers.map((m, i) => [
      m.window_manager, m.error || goodputs[i],
      m.gain ? `${rw.format.difference(m.gain.mean - 1)}${!(m.gain.half_width > 0) ? "" : ` ± ${rw.format.difference(m.gain.half_width).replace("+", "")}`}` : rw.format.NONE,
    ]);
    return table(`In simulation, ${check.seeds} ${check.seeds === 1 ? "run" : "runs"} of each`, ["Window manager", "Goodput", "Gain over none"], rows);
  }

  // The goodput with each window manager, with its interval.
  function managersChart(check) {
    const of = check.managers.filter((m) => m.goodput_bps);
    const ends = (sign) => of.map((m) => (m.goodput_bps.half_width === null ? null : m.goodput_bps.mean + sign * m.goodput_bps.half_width));
    const names = of.map((m) => m.window_manager);
    return {
      title: "Simulated goodput with each window manager",
      note: check.seeds > 1 ? `Means of ${check.seeds} runs with 95 % confidence intervals.` : "One run of each.",
      x: { label: "" },
      y: { label: "Goodput", kind: "rate", fromZero: true },
      series: [
        { name: "goodput", x: names, y: of.map((m) => m.goodput_bps.mean), style: "bars", hollow: true, colour: "--series-1", low: ends(-1), high: ends(1), whiskers: true },
        { name: "predicted with limits", x: names, y: names.map(() => check.predicted_goodput_bps), style: "line", colour: "--ink", dash: [6, 4], width: 1.5 },
      ],
      height: 280,
    };
  }

  // The warning of the command: the limits, which the last manager has, cost throughput with confidence.
  function warning(check) {
    const last = check && check.managers[check.managers.length - 1];
    const gain = last && last.gain;
    const costs = gain && gain.half_width !== null && gain.mean + gain.half_width < 1;
    return costs ? h("p", { class: "warning" }, "In simulation the limits cost throughput: leave ", h("code", null, "transfer.window_manager"), " as it is.") : null;
  }

  function drawCheck(parent, check) {
    const cell = h("div", { class: "cell whole" });
    parent.append(h("div", { class: "charts" }, cell));
    rw.chart.create(cell, managersChart(check));
  }

  /** Draws the document `tuning` of a report, with its figures and surfaces, into `parent`. */
  function draw(parent, report) {
    const { tuning } = report;
    const alarm = warning(tuning.check);
    if (alarm) parent.append(alarm);
    parent.append(tiles(tuning), h("section", { class: "limits" }, paths(tuning), tuning.check ? managers(tuning.check) : null));
    if (tuning.check && tuning.check.managers.some((m) => m.goodput_bps)) drawCheck(parent, tuning.check);
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
