// One run: its charts, its tables, its scenario.
(function (rw) {
  "use strict";
  const { h } = rw.dom;
  const { at } = rw.metrics;
  const TIME = { label: "Time", kind: "time", tight: true };
  let serial = 0;

  const list = (value) => (Array.isArray(value) ? value : []);
  const pathLook = (i) => rw.paint.look(i);

  function line(name, x, y, more) {
    return { name, x: list(x), y: list(y), style: "line", ...more };
  }

  function sequenceTime(run, sync) {
    const sequence = run.sequence || {};
    const arrivals = list(sequence.paths).map((p, i) => ({
      name: p.name, x: list(p.time_s), y: list(p.seq), style: "points", size: 5, ...pathLook(i),
    }));
    const delivered = sequence.delivered || {};
    const cut = rw.format.isNumber(sequence.cut_s)
      ? ` Cut at ${rw.format.value(sequence.cut_s, "time")}: more arrivals than a plot can show.` : "";
    return {
      title: "Sequence over time",
      note: "Each dot is the arrival of a packet; the line is what the application has received in order. Dots above the line wait in the buffer." + cut,
      x: TIME,
      y: { label: "Sequence number", kind: "number" },
      series: [{ name: "in order", x: list(delivered.time_s), y: list(delivered.seq), style: "step", colour: "--ink", width: 1.25 }, ...arrivals],
      sync: { key: sync, zoom: false },
      height: 320,
    };
  }

  function throughput(series, run, base) {
    const bound = at(run.result, "flow_control_bound_bps");
    const count = rw.bins.samples([run]);
    const time = rw.bins.ends(series.time_s, count);
    const rate = (values) => rw.bins.means(values, count);
    const limit = rw.format.isNumber(bound) && time.length
      ? [line("flow-control bound", [time[0], time[time.length - 1]], [bound, bound], { colour: "--muted", dash: [4, 4], width: 1.25 })]
      : [];
    return {
      ...base,
      title: "Throughput and goodput",
      note: rw.bins.note([run], count),
      y: { label: "Rate", kind: "rate", fromZero: true },
      series: [
        ...list(series.paths).map((p, i) => line(p.name, time, rate(p.throughput_bps), pathLook(i))),
        line("goodput", time, rate(series.goodput_bps), { colour: "--ink", width: 2.25 }),
        ...limit,
      ],
    };
  }

  function buffer(series, base) {
    return {
      ...base,
      title: "Receive buffer",
      note: "Occupancy by out-of-order data, and the window the receiver still offers.",
      y: { label: "Bytes", kind: "bytes", fromZero: true },
      series: [
        line("occupied", series.time_s, series.receive_buffer_bytes, { colour: "--series-2", area: true }),
        line("offered window", series.time_s, series.receive_window_bytes, { colour: "--ink", dash: [6, 4], width: 1.5 }),
      ],
    };
  }

  function windows(series, base) {
    const both = list(series.paths).flatMap((p, i) => [
      line(p.name, series.time_s, p.cwnd_bytes, { ...pathLook(i), tag: "window" }),
      line(p.name, series.time_s, p.in_flight_bytes, { ...pathLook(i), tag: "in flight", width: 1, dash: [3, 3] }),
    ]);
    return { ...base, title: "Congestion windows and data in flight", y: { label: "Bytes", kind: "bytes", fromZero: true }, series: both };
  }

  function roundTrip(series, base) {
    return {
      ...base,
      title: "Round-trip time",
      note: "Smoothed, as the sender sees it.",
      y: { label: "RTT", kind: "time", fromZero: true },
      series: list(series.paths).map((p, i) => line(p.name, series.time_s, p.srtt_s, pathLook(i))),
    };
  }

  function charts(run) {
    serial += 1;
    const sync = `run-${serial}`;
    const series = run.series || {};
    const warmup = at(run.result, "warmup_s");
    const base = { x: TIME, sync: { key: sync, zoom: true }, shade: rw.format.isNumber(warmup) && warmup > 0 ? [0, warmup] : null };
    return [
      { wide: true, spec: sequenceTime(run, sync) },
      { wide: true, spec: throughput(series, run, base) },
      { wide: false, spec: buffer(series, base) },
      { wide: false, spec: roundTrip(series, base) },
      { wide: true, spec: windows(series, base) },
    ];
  }

  function facts(run) {
    const result = run.result || {};
    const pairs = [
      ["Protocol", result.protocol],
      ["Scheduler", result.scheduler],
      ["Duration", rw.format.isNumber(result.duration_s) ? rw.format.value(result.duration_s, "time") : null],
      ["Warm-up", rw.format.isNumber(result.warmup_s) ? rw.format.value(result.warmup_s, "time") : null],
      ["Seed", run.seed === null || run.seed === undefined ? null : h("code", null, String(run.seed))],
    ].filter(([, value]) => value !== null && value !== undefined);
    return h("dl", { class: "keyline" }, pairs.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));
  }

  function scenario(run) {
    if (!run.scenario_toml) return null;
    return h("details", { class: "scenario" },
      h("summary", null, "Scenario file"),
      h("pre", { tabindex: 0 }, h("code", null, run.scenario_toml)));
  }

  /** Draws one run into `parent`; returns the charts, so that they can be removed again. */
  function draw(parent, run) {
    parent.append(facts(run));
    const grid = h("div", { class: "charts" });
    parent.append(grid);
    const drawn = charts(run).map(({ wide, spec }) => {
      const cell = h("div", { class: wide ? "cell whole" : "cell" });
      grid.append(cell);
      return rw.chart.create(cell, spec);
    });
    const paths = rw.tables.paths(run.result);
    if (paths) parent.append(paths);
    parent.append(rw.tables.detail(run.result));
    const file = scenario(run);
    if (file) parent.append(file);
    return drawn;
  }

  rw.run = { draw, line };
})((window.Ropewalk = window.Ropewalk || {}));
