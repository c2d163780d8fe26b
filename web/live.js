// The live page: the last hour of a running command, kept up to date by server-sent events.
(function (rw) {
  "use strict";
  const { h } = rw.dom;
  const SAMPLES = 3600;
  // Events that are listed.
  const EVENTS = 50;
  const DOWN_EVENT = "link down";
  const UP_EVENT = "link up";
  const byId = (id) => document.getElementById(id);

  let samples = [];
  let events = [];
  let charts = [];

  // Where several peers use one link, the peer belongs to its name.
  function nameOf(link, peers) {
    return peers > 1 ? `${link.link} (${link.peer})` : link.link;
  }

  function add(sample) {
    const last = samples[samples.length - 1];
    if (last && sample.time_s <= last.time_s) return false;
    samples.push(sample);
    if (samples.length > SAMPLES) samples.shift();
    return true;
  }

  /** One column per link, with a value for each sample; `value` combines the paths of one link. */
  function columns(value) {
    const peers = new Set(samples.flatMap((sample) => sample.links.map((link) => link.peer))).size;
    const found = new Map();
    samples.forEach((sample, i) => {
      for (const link of sample.links) {
        const name = nameOf(link, peers);
        if (!found.has(name)) found.set(name, new Array(samples.length).fill(null));
        const column = found.get(name);
        column[i] = value(column[i], link);
      }
    });
    return found;
  }

  // `rest`: the value while the link has no association; null leaves a gap.
  function series(x, value, rest) {
    const filled = (column) => (rest === null ? column : column.map((y) => y ?? rest));
    return [...columns(value)].map(([name, y], i) => ({ name, x, y: filled(y), style: "line", ...rw.paint.look(i) }));
  }

  // Zeros alone have no unit that reads well.
  function axis(label, kind, list) {
    const some = list.some((one) => one.y.some((y) => y > 0));
    return { label, kind: some ? kind : "number", fromZero: true };
  }

  // Marks on the axis when links went down and came back.
  function marks(origin, kind, colour) {
    const first = samples[0].time_s;
    const times = events.filter((event) => event.event === kind && event.time_s >= first).map((event) => event.time_s - origin);
    return times.length ? [{ name: kind, x: times, y: times.map(() => 0), style: "points", size: 8, colour }] : [];
  }

  const sum = (key) => (before, link) => (before || 0) + link[key];
  const largest = (key) => (before, link) => (link[key] === null ? before : Math.max(before || 0, link[key]));

  function specs() {
    const origin = samples[0].time_s;
    const x = samples.map((sample) => sample.time_s - origin);
    const base = { x: { label: "Time since the first sample", kind: "time" }, sync: { key: "live", zoom: true } };
    const rate = (before, link) => (before || 0) + link.up_bps + link.down_bps;
    const held = samples.map((sample) => sample.out_of_order_bytes);
    const rates = series(x, rate, 0);
    const times = series(x, largest("rtt_s"), null);
    const buffer = [{ name: "occupied", x, y: held, style: "line", colour: "--series-2", area: true }];
    const flights = series(x, sum("in_flight_bytes"), 0);
    return [
      { ...base, title: "Rate", note: "User data in both directions. Dots on the axis: a link went down, or came back.",
        y: axis("Rate", "rate", rates),
        series: [...rates, ...marks(origin, DOWN_EVENT, "--bad"), ...marks(origin, UP_EVENT, "--good")] },
      { ...base, title: "Round-trip time", note: "Smoothed, as this end sees it.",
        y: axis("RTT", "time", times), series: times },
      { ...base, title: "Receive buffer", note: "Occupancy by out-of-order data.",
        y: axis("Bytes", "bytes", buffer), series: buffer },
      { ...base, title: "Data in flight", y: axis("Bytes", "bytes", flights), series: flights },
    ];
  }

  function draw() {
    if (samples.length < 2) return;
    const all = specs();
    const current = charts.length === all.length && all.every((spec, i) => charts[i].update(spec));
    if (current) return;
    for (const chart of charts) chart.destroy();
    byId("charts").replaceChildren();
    charts = all.map((spec, i) => {
      const cell = h("div", { class: i === 0 || i === all.length - 1 ? "cell whole" : "cell" });
      byId("charts").append(cell);
      return rw.chart.create(cell, spec);
    });
  }

  const text = (value, kind) => (value === null || value === undefined ? "–" : rw.format.value(value, kind));

  function table(links) {
    // Only tunnels have rules about the use of links.
    const rules = links.some((link) => link.use !== "always");
    const head = ["Link", "Peer", "State", ...(rules ? ["Use"] : []), "Up", "Down", "Share", "RTT", "Loss", "Queue"];
    const row = (link) => h("tr", { "data-link": link.link, "data-state": link.state },
      h("th", { scope: "row" }, link.shown), h("td", null, link.peer),
      h("td", { class: link.state === "active" ? "good" : "bad" }, link.state),
      ...(rules ? [h("td", null, link.use)] : []),
      ...[[link.up_bps, "rate"], [link.down_bps, "rate"], [link.share, "ratio"], [link.rtt_s, "time"], [link.loss, "ratio"], [link.queue_s, "time"]]
        .map(([value, kind]) => h("td", { class: "quantity" }, text(value, kind))));
    return h("table", null,
      h("thead", null, h("tr", null, head.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", null, links.map(row)));
  }

  const clock = (time) => `${new Date(time * 1000).toISOString().slice(11, 19)}Z`;

  function show(status) {
    document.title = `${status.command} – Ropewalk`;
    byId("title").textContent = `ropewalk ${status.command}`;
    byId("origin").textContent = `pid ${status.pid}, version ${status.version}, at ${clock(status.time_s)}`;
    byId("links").replaceChildren(status.links.length ? table(status.links) : h("p", { class: "note" }, "No association is open."));
    events = status.events;
    byId("events").replaceChildren(...events.slice(-EVENTS).reverse().map((event) =>
      h("li", { "data-event": event.event }, h("time", null, clock(event.time_s)), event.peer ? `${event.peer}: ${event.text}` : event.text)));
  }

  function themeButton() {
    const button = h("button", { type: "button", onclick: rw.theme.toggle });
    const name = () => { button.textContent = rw.theme.current() === "dark" ? "Light" : "Dark"; };
    rw.theme.onChange(name);
    name();
    return button;
  }

  function follow() {
    const source = new EventSource(`events${location.search}`);
    let added = false;
    source.addEventListener("sample", (message) => { if (message.data) added = add(JSON.parse(message.data)); });
    source.addEventListener("status", (message) => {
      if (!message.data) return;
      byId("lost").hidden = true;
      show(JSON.parse(message.data));
      if (added) draw();
      rw.status.finish();
    });
    source.addEventListener("error", () => { byId("lost").hidden = false; });
  }

  async function start() {
    byId("actions").append(themeButton());
    const answer = await fetch(`history${location.search}`);
    for (const sample of await answer.json()) add(sample);
    follow();
  }

  start();
})((window.Ropewalk = window.Ropewalk || {}));
