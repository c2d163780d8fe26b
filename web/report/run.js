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

  // For each arrival, its sequence number minus the number that the application waits for at that moment.
  // Both lists ascend in time.
  function aheadOfDelivery(arrivals, delivered) {
    const [times, counts] = [list(delivered.time_s), list(delivered.seq)];
    let next = 0;
    let count = 0;
    return list(arrivals.time_s).map((at, i) => {
      while (next < times.length && times[next] < at) {
        count = counts[next];
        next += 1;
      }
      return arrivals.seq[i] - count;
    });
  }

  function reordering(run, sync) {
    const sequence = run.sequence || {};
    const delivered = sequence.delivered || {};
    const arrivals = list(sequence.paths).map((p, i) => ({
      name: p.name, x: list(p.time_s), y: aheadOfDelivery(p, delivered), style: "points", size: 4, ...pathLook(i),
    }));
    const cut = rw.format.isNumber(sequence.cut_s)
      ? ` Cut at ${rw.format.value(sequence.cut_s, "time")}: more arrivals than a plot can show.` : "";
    return {
      title: "Reordering at the receiver",
      note: "Each dot is the arrival of a packet: its sequence number minus the one that the application waits for. Dots at 0 are delivered at once; dots above wait in the buffer; dots below are duplicates." + cut,
      x: TIME,
      y: { label: "Packets ahead of in-order delivery", kind: "number" },
      series: arrivals,
      sync: { key: sync, zoom: false },
      height: 320,
    };
  }

  // The share of packets whose delay is at most x.
  function delays(run) {
    const distributions = run.distributions || {};
    const one = (name, found, more) => line(name, found && found.values, found && found.shares, { style: "step", ...more });
    return {
      title: "Distribution of delays",
      note: "The share of packets with at most this delay: from the first transmission to in-order delivery, and the part of it spent in the receive buffer.",
      x: { label: "Delay", kind: "time" },
      y: { label: "Share of packets", kind: "ratio", fromZero: true },
      series: [
        one("delay", distributions.app_delay_s, { colour: "--series-1", width: 2 }),
        one("blocking time", distributions.blocking_time_s, { colour: "--series-2", dash: [6, 4] }),
      ],
    };
  }

  // When packets of each path were declared lost, at the end of the interval.
  function losses(series) {
    const each = list(series.paths).map((p, i) => ({
      name: p.name, colour: pathLook(i).colour, x: list(series.time_s).filter((_, k) => list(p.lost_packets)[k] > 0),
    }));
    return each.some((one) => one.x.length) ? each : [];
  }

  // The warm-up, and the outages of each path in its colour.
  function spans(run) {
    const warmup = at(run.result, "warmup_s");
    const shaded = rw.format.isNumber(warmup) && warmup > 0 ? [{ from: 0, to: warmup, label: "warm-up" }] : [];
    const names = list(run.series && run.series.paths).map((p) => p.name);
    const down = list(run.outages).map((outage) => ({
      from: outage.from_s, to: outage.to_s, label: `${outage.path} down`, colour: pathLook(Math.max(0, names.indexOf(outage.path))).colour,
    }));
    return [...shaded, ...down];
  }

  const lossNote = (series) => (losses(series).length ? "Short lines at the lower edge: losses, in the colour of the path." : null);

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
      note: [rw.bins.note([run], count), lossNote(series)].filter(Boolean).join(" "),
      ticks: losses(series),
      y: { label: "Rate", kind: "rate", fromZero: true },
      series: [
        ...list(series.paths).map((p, i) => line(p.name, time, rate(p.throughput_bps), pathLook(i))),
        line("goodput", time, rate(series.goodput_bps), { colour: "--ink", width: 2.25 }),
        ...limit,
      ],
    };
  }

  function buffer(series, base) {
    const held = list(series.receive_buffer_bytes);
    const peaks = list(series.receive_buffer_peak_bytes);
    const band = peaks.length ? { low: held, high: peaks.map((peak, i) => Math.max(peak, held[i])) } : { area: true };
    return {
      ...base,
      title: "Receive buffer",
      note: `Occupancy by out-of-order data, and the window that the receiver still offers.${peaks.length ? " The band reaches up to the peak of each interval." : ""}`,
      y: { label: "Bytes", kind: "bytes", fromZero: true },
      series: [
        line("occupied", series.time_s, held, { colour: "--series-2", ...band }),
        line("offered window", series.time_s, series.receive_window_bytes, { colour: "--ink", dash: [6, 4], width: 1.5 }),
      ],
    };
  }

  function windows(series, base) {
    const both = list(series.paths).flatMap((p, i) => [
      line(p.name, series.time_s, p.cwnd_bytes, { ...pathLook(i), tag: "window" }),
      line(p.name, series.time_s, p.in_flight_bytes, { ...pathLook(i), tag: "in flight", width: 1, dash: [3, 3] }),
    ]);
    const note = lossNote(series);
    return { ...base, title: "Congestion windows and data in flight", note, ticks: losses(series), y: { label: "Bytes", kind: "bytes", fromZero: true }, series: both };
  }

  function roundTrip(series, base) {
    return {
      ...base,
      title: "Round-trip time",
      note: "Smoothed, as the sender measures it: from a packet to its acknowledgement, which may return on a faster path. A gap: the path had failed, or had no sample yet.",
      y: { label: "RTT", kind: "time", fromZero: true },
      series: list(series.paths).map((p, i) => line(p.name, series.time_s, p.srtt_s, pathLook(i))),
    };
  }

  function charts(run) {
    serial += 1;
    const sync = `run-${serial}`;
    const series = run.series || {};
    const base = { x: TIME, sync: { key: sync, zoom: true }, spans: spans(run) };
    return [
      { wide: true, spec: throughput(series, run, base) },
      { wide: false, spec: buffer(series, base) },
      { wide: false, spec: roundTrip(series, base) },
      { wide: true, spec: reordering(run, sync) },
      { wide: false, spec: delays(run) },
      { wide: false, spec: windows(series, base) },
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
    const notes = list(run.notes);
    if (notes.length) parent.append(h("ul", { class: "note notes" }, notes.map((note) => h("li", null, note))));
    const grid = h("div", { class: "charts" });
    parent.append(grid);
    const drawn = charts(run).map(({ wide, spec }) => {
      const cell = h("div", { class: wide ? "cell whole" : "cell" });
      grid.append(cell);
      return rw.chart.create(cell, spec);
    });
    const tables = [rw.tables.directions(run.result), rw.tables.paths(run.result), rw.tables.flows(run.result)];
    parent.append(...tables.filter((table) => table !== null));
    parent.append(rw.tables.detail(run.result));
    const file = scenario(run);
    if (file) parent.append(file);
    return drawn;
  }

  rw.run = { draw, line };
})((window.Ropewalk = window.Ropewalk || {}));
