// One chart: a figure with its plot, legend, keyboard, text alternative. All drawing goes through here.
//
// A chart is described by a plain object:
//   title, note
//   x: {label, kind, log}, y: {label, kind, log, fromZero}     kind as in format.js
//   series: [{name, tag, x, y, style: line|step|points|bars, colour: "--variable",
//            dash, width, area, marker, hollow, size, hidden, named,
//            low, high, whiskers}]    low and high: a band, or whiskers, around y at the same x
//   sync: {key, zoom}     charts of one key share the cursor; with zoom also the zoom
//   spans: [{from, to, label, colour}]    shaded intervals of x: the warm-up, outages
//   ticks: [{name, colour, x}]    short lines at the lower edge: losses
//   height                pixels
(function (rw) {
  "use strict";
  const { h } = rw.dom;
  const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
  const ZOOM_EVENTS = ["mousedown", "mouseup", "dblclick"];
  const PRINT_WIDTH = 660;
  const PX_OF_CHAR = 7;
  // Approximate width of the y axis and the margin.
  const AXIS_ROOM = 95;
  // Margin on the right; slanted names of the x axis reach further.
  const MARGIN = 14;
  const NAMES_MARGIN = 34;
  // Every chart on the page, with its description.
  const live = new Map();

  const colour = (name) => () => rw.theme.colour(name);

  function extent(columns) {
    let largest = 0;
    for (const column of columns) {
      for (const v of column) if (rw.format.isNumber(v)) largest = Math.max(largest, Math.abs(v));
    }
    return largest;
  }

  const highs = (spec) => spec.series.filter((s) => s.high && !s.hidden).map((s) => s.high);

  // Markers need space at both ends; a line may touch the frame; a time axis that begins near 0 begins at 0.
  function rangeX(spec, xs) {
    const needsMargin = spec.series.some((s) => s.style === "points" || s.style === "bars" || s.marker) && !spec.x.tight;
    const barred = spec.series.some((s) => s.style === "bars");
    return (u, min, max) => {
      if (min === null) return [0, 1];
      // Of points at a single x, the library passes a wider range.
      if (xs[0] === xs[xs.length - 1]) return [xs[0] - 0.5, xs[0] + 0.5];
      if (min === max) return [min - 0.5, max + 0.5];
      const whole = min === xs[0] && max === xs[xs.length - 1];
      if (spec.x.tight && whole && min > 0 && min < 0.15 * max) return [0, max];
      if (!needsMargin || !whole) return [min, max];
      const pad = barred ? (0.6 * (max - min)) / Math.max(1, new Set(xs).size - 1) : 0.03 * (max - min);
      return [min - pad, max + pad];
    };
  }

  // The range of the data with a small margin, not the full decades around it.
  function rangeLog(u, min, max) {
    if (min === null || max === null) return [1, 10];
    return [min / 1.25, max * 1.25];
  }

  // The smallest and largest value of bands and whiskers that are shown.
  function bandExtent(spec, u) {
    let [least, most] = [Infinity, -Infinity];
    // The x axis has no range before the first drawing.
    const [from, to] = [u.scales.x.min ?? -Infinity, u.scales.x.max ?? Infinity];
    spec.series.forEach((s, i) => {
      if (!s.low || (u.series[i + 1] && !u.series[i + 1].show)) return;
      const xs = rw.align.positions(s, spec);
      for (let k = 0; k < xs.length; k += 1) {
        if (xs[k] < from || xs[k] > to) continue;
        if (rw.format.isNumber(s.low[k])) least = Math.min(least, s.low[k]);
        if (rw.format.isNumber(s.high[k])) most = Math.max(most, s.high[k]);
      }
    });
    return [least, most];
  }

  function rangeY(spec) {
    const barred = spec.series.some((s) => s.style === "bars");
    return (u, dataMin, dataMax) => {
      if (dataMin === null || dataMax === null) return [0, 1];
      const [least, most] = bandExtent(spec, u);
      const [min, max] = [Math.min(dataMin, least), Math.max(dataMax, most)];
      if (min === max && min === 0) return [0, 1];
      const low = min >= 0 && (spec.y.fromZero || barred || min < 0.5 * max || min === max);
      const pad = 0.07 * (max - (low ? 0 : min) || Math.abs(max));
      return [low ? 0 : barred ? Math.min(0, min - pad) : min - pad, max + pad];
    };
  }

  function scales(spec, xs) {
    const log = { distr: 3, log: 10, range: rangeLog };
    return {
      x: spec.x.log ? { time: false, ...log } : { time: false, range: rangeX(spec, xs) },
      y: spec.y.log ? log : { range: rangeY(spec) },
    };
  }

  function axis(side, scale, words) {
    const text = (v) => (v === null || v === undefined ? "" : words ? words[v] ?? "" : rw.format.scaled(v, scale));
    const common = {
      font: FONT,
      stroke: colour("--muted"),
      grid: { stroke: colour("--grid"), width: 1 },
      ticks: { stroke: colour("--grid"), width: 1, size: 5 },
      values: (u, splits) => splits.map(text),
    };
    if (side === "x") return { ...common, size: 32, space: 60, ...(words ? wordy(words) : {}) };
    return { ...common, size: axisWidth, space: 34, gap: 6 };
  }

  // Labels that would overlap are slanted; if slanted ones would overlap too, they are vertical.
  function wordy(words) {
    const longest = Math.max(...words.map((word) => PX_OF_CHAR * String(word).length));
    const angle = (u) => {
      const room = (u.width - AXIS_ROOM) / (words.length + 0.2);
      if (longest + 10 <= room) return 0;
      return room >= 22 ? -45 : -90;
    };
    const height = (u) => 20 + Math.max(12, longest * Math.sin((-angle(u) * Math.PI) / 180));
    return { incrs: [1], space: 10, rotate: angle, size: (u) => Math.ceil(height(u)) };
  }

  // As wide as the longest tick needs; about 7 px a character at 12 px.
  function axisWidth(u, values) {
    const longest = Math.max(0, ...(values || []).map((v) => String(v).length));
    return Math.min(84, 20 + 7 * longest);
  }

  function styleOf(s, barIndex, barCount) {
    const stroke = colour(s.colour);
    const base = { label: s.name, scale: "y", stroke, show: !s.hidden, points: { show: false } };
    if (s.style === "bars") {
      const outline = s.hollow ? { width: 1.5, fill: "transparent" } : { width: 0, fill: stroke };
      return { ...base, ...outline, paths: rw.paint.bars(barIndex, barCount) };
    }
    const size = s.size || 7;
    const dots = { show: true, size, width: 1.5, stroke, fill: s.hollow ? "transparent" : stroke };
    if (s.style === "points") return { ...base, paths: () => null, points: dots };
    return {
      ...base,
      width: s.width || 1.75,
      dash: s.dash && s.dash.length ? s.dash : undefined,
      fill: s.area ? colour(`${s.colour}-area`) : undefined,
      paths: s.style === "step" ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear(),
      points: s.marker ? dots : base.points,
    };
  }

  function seriesOptions(spec) {
    const bars = spec.series.filter((s) => s.style === "bars");
    return [{}, ...spec.series.map((s) => styleOf(s, bars.indexOf(s), bars.length))];
  }

  function cursor(spec) {
    const hover = { size: 8, stroke: colour("--card"), fill: (u, i) => rw.theme.colour(spec.series[i - 1].colour) };
    const options = { drag: { x: true, y: false, dist: 6 }, points: hover, y: false };
    if (!spec.sync) return options;
    const pass = (type) => spec.sync.zoom || !ZOOM_EVENTS.includes(type);
    options.sync = { key: spec.sync.key, scales: ["x", null], setSeries: false, filters: { pub: pass, sub: pass } };
    return options;
  }

  function prepare(spec) {
    const wordy = spec.series.some((s) => s.x.some((x) => typeof x === "string"));
    const placed = wordy ? rw.align.categories(spec.series) : { words: null, list: spec.series };
    const data = rw.align.align(placed.list, spec.x.log, spec.y.log);
    return {
      data,
      words: placed.words,
      scaleX: rw.format.pick(spec.x.kind || "number", extent([data[0]])),
      scaleY: rw.format.pick(spec.y.kind || "number", extent([...data.slice(1), ...highs(spec)])),
    };
  }

  function options(spec, parts, ready, hooks) {
    return {
      width: Math.max(200, parts.plot.clientWidth || 600),
      height: spec.height || 260,
      legend: { show: false },
      padding: [(spec.spans || []).length ? 18 : 10, ready.words ? NAMES_MARGIN : MARGIN, 0, 0],
      scales: scales(spec, ready.data[0]),
      axes: [axis("x", ready.scaleX, ready.words), axis("y", ready.scaleY, null)],
      series: seriesOptions(spec),
      cursor: cursor(spec),
      plugins: rw.marks.plugins(spec),
      hooks,
    };
  }

  // The values under the cursor, in the legend.
  function report(u, parts, ready) {
    const { idx, idxs } = u.cursor;
    if (idx === null || idx === undefined) return parts.legend.values("", []);
    const at = u.data[0][idx];
    const texts = u.data.slice(1).map((column, i) => {
      const place = idxs ? idxs[i + 1] : idx;
      const v = place === null || place === undefined ? null : column[place];
      return rw.format.isNumber(v) ? join(rw.format.scaled(Number(v.toPrecision(4)), ready.scaleY), ready.scaleY.unit) : "";
    });
    const x = ready.words ? ready.words[at] : join(rw.format.scaled(Number(at.toPrecision(5)), ready.scaleX), ready.scaleX.unit);
    return parts.legend.values(x, texts);
  }

  const join = (text, unit) => (unit ? `${text}\u202f${unit}` : text);

  function zoomed(u) {
    const xs = u.data[0];
    return u.scales.x.min > xs[0] || u.scales.x.max < xs[xs.length - 1];
  }

  // The chart itself and those that share its zoom.
  function companions(u) {
    const own = live.get(u);
    if (!own.sync || !own.sync.zoom) return [u];
    return [...live].filter(([, spec]) => spec.sync && spec.sync.zoom && spec.sync.key === own.sync.key).map(([other]) => other);
  }

  function zoomTo(u, min, max) {
    for (const one of companions(u)) one.setScale("x", { min, max });
  }

  function resetZoom(u) {
    for (const one of companions(u)) {
      const xs = one.data[0];
      one.setScale("x", { min: xs[0], max: xs[xs.length - 1] });
    }
  }

  function zoomBy(u, factor) {
    const { min, max } = u.scales.x;
    const xs = u.data[0];
    const at = u.cursor.left >= 0 ? u.posToVal(u.cursor.left, "x") : (min + max) / 2;
    const left = Math.max(xs[0], at - (at - min) * factor);
    const right = Math.min(xs[xs.length - 1], at + (max - at) * factor);
    if (right > left) zoomTo(u, left, right);
  }

  // The arrow keys move the cursor from point to point, + and - zoom, 0 or Escape shows everything again.
  function keyboard(event, u) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) {
      const last = u.data[0].length - 1;
      const from = u.cursor.idx ?? (step > 0 ? -1 : last + 1);
      const stride = event.shiftKey ? 10 : 1;
      const to = Math.min(last, Math.max(0, from + step * stride));
      u.setCursor({ left: u.valToPos(u.data[0][to], "x"), top: u.over.clientHeight / 2 }, true, true);
    } else if (event.key === "+" || event.key === "=") zoomBy(u, 0.5);
    else if (event.key === "-") zoomBy(u, 2);
    else if (event.key === "0" || event.key === "Escape") resetZoom(u);
    else return;
    event.preventDefault();
  }

  function label(text, unit) {
    return unit && !text.includes(unit) ? `${text}, ${unit}` : text;
  }

  function frame(spec, ready, legend) {
    const reset = h("button", { type: "button", class: "small", hidden: true }, "Show all");
    const plot = h("div", { class: "plot", tabindex: 0, role: "img", "aria-label": rw.summary.sentence(spec) });
    const element = h("figure", { class: "chart" },
      h("figcaption", null, h("h3", null, spec.title), spec.note ? h("p", { class: "note" }, spec.note) : null),
      h("div", { class: "chart-top" }, h("span", { class: "axis-label" }, label(spec.y.label, ready.scaleY.unit)), reset),
      plot,
      h("div", { class: "axis-label axis-x" }, label(spec.x.label, ready.words ? "" : ready.scaleX.unit)),
      legend.element,
      rw.summary.table(spec));
    return { element, plot, reset, legend };
  }

  function empty(spec) {
    rw.status.chart(0);
    return h("figure", { class: "chart" },
      h("figcaption", null, h("h3", null, spec.title), h("p", { class: "note" }, "No values were recorded for this chart.")));
  }

  function watch(u, parts) {
    const observer = new ResizeObserver(() => {
      const width = parts.plot.clientWidth;
      if (width > 0 && Math.abs(width - u.width) >= 1) u.setSize({ width, height: u.height });
    });
    observer.observe(parts.plot);
    parts.reset.addEventListener("click", () => resetZoom(u));
    parts.plot.addEventListener("keydown", (event) => keyboard(event, u));
    return observer;
  }

  /** Draws `spec` into `parent`. Returns `{toggle(name, on), update(spec), destroy()}`. */
  function create(parent, spec) {
    if (!spec.series.some((s) => s.y.some(rw.format.isNumber))) {
      parent.append(empty(spec));
      return { toggle() {}, destroy: () => parent.replaceChildren(), update: () => false };
    }
    const ready = prepare(spec);
    let u = null;
    const flip = (index, on) => {
      u.setSeries(index + 1, { show: on });
      parts.legend.pressed(index, on);
    };
    const legend = rw.legend.create(spec, (index) => flip(index, !u.series[index + 1].show));
    const parts = frame(spec, ready, legend);
    parent.append(parts.element);
    u = new uPlot(options(spec, parts, ready, {
      setCursor: [(self) => report(self, parts, ready)],
      setScale: [(self, key) => { if (key === "x" && u) parts.reset.hidden = !zoomed(self); }],
    }), ready.data, parts.plot);
    const observer = watch(u, parts);
    live.set(u, spec);
    rw.status.chart(ready.data.slice(1).flat().filter(rw.format.isNumber).length);
    return {
      toggle: (name, on) => spec.series.forEach((s, i) => {
        if (s.name !== name) return;
        flip(i, on);
        parts.legend.listed(i, on);
      }),
      // Shows other values of the same series. Returns false if the chart must be drawn again.
      update: (next) => {
        const fresh = prepare(next);
        const alike = fresh.data.length === ready.data.length && next.series.every((s, i) => s.name === spec.series[i].name);
        if (!alike || fresh.scaleX.unit !== ready.scaleX.unit || fresh.scaleY.unit !== ready.scaleY.unit) return false;
        const stays = zoomed(u);
        ready.data = fresh.data;
        u.setData(fresh.data, !stays);
        if (stays) u.redraw();
        return true;
      },
      destroy: () => { observer.disconnect(); live.delete(u); u.destroy(); parts.element.remove(); },
    };
  }

  function repaint() {
    for (const u of live.keys()) u.redraw(false, true);
  }

  function fit(width) {
    for (const u of live.keys()) u.setSize({ width: width || u.root.parentElement.clientWidth, height: u.height });
  }

  rw.theme.onChange(repaint);
  window.addEventListener("beforeprint", () => fit(PRINT_WIDTH));
  window.addEventListener("afterprint", () => fit(0));

  rw.chart = { create };
})((window.Ropewalk = window.Ropewalk || {}));
