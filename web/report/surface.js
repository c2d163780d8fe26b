// A quantity over two parameters as a map. Small values are light and large ones dark; the dark theme reverses this.
(function (rw) {
  "use strict";
  const { h } = rw.dom;
  const ROOM = { left: 44, right: 10, top: 10, bottom: 26 };
  const live = new Set();

  const flat = (surface) => surface.value.flat().filter(rw.format.isNumber);

  function span(surface) {
    const all = flat(surface);
    // Several maps of one figure share a range, so that their colours can be compared.
    const [min, max] = surface.range || [Math.min(...all), Math.max(...all)];
    return { min, max, mean: all.reduce((a, b) => a + b, 0) / all.length, count: all.length };
  }

  function channels(name) {
    const hex = rw.theme.colour(name).slice(1);
    return [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16));
  }

  // A mixture of two colours of the theme: lightness falls steadily from one end to the other.
  function ramp() {
    const [from, to] = [channels("--accent-soft"), channels("--series-1")];
    return (share) => `rgb(${from.map((c, i) => Math.round(c + (to[i] - c) * share)).join(",")})`;
  }

  // Cells reach half way to their neighbours.
  function edges(values) {
    if (values.length === 1) return [values[0] - 0.5, values[0] + 0.5];
    const inner = values.slice(1).map((v, i) => (v + values[i]) / 2);
    const last = values.length - 1;
    return [values[0] - (inner[0] - values[0]), ...inner, values[last] + (values[last] - inner[last - 1])];
  }

  // With `even`, cells are equally wide whatever their values: a sweep may have few values, or logarithmic steps.
  const positions = (surface, values) => (surface.even ? values.map((_, i) => i) : values);

  function frame(surface, width, height) {
    const [px, py] = [positions(surface, surface.x), positions(surface, surface.y)];
    const [ex, ey] = [edges(px), edges(py)];
    const wide = width - ROOM.left - ROOM.right;
    const high = height - ROOM.top - ROOM.bottom;
    const x = (v) => ROOM.left + (wide * (v - ex[0])) / (ex[ex.length - 1] - ex[0]);
    const y = (v) => ROOM.top + high - (high * (v - ey[0])) / (ey[ey.length - 1] - ey[0]);
    const placed = (values, places) => (v) => places[values.indexOf(v)] ?? v;
    return { ex, ey, x, y, wide, high, placeX: placed(surface.x, px), placeY: placed(surface.y, py) };
  }

  function cells(ctx, surface, at, found) {
    const colour = ramp();
    surface.value.forEach((row, j) => row.forEach((value, i) => {
      if (!rw.format.isNumber(value)) return;
      ctx.fillStyle = colour(found.max > found.min ? (value - found.min) / (found.max - found.min) : 1);
      const [left, top] = [at.x(at.ex[i]), at.y(at.ey[j + 1])];
      // Slightly larger than the cell, because seams would show otherwise.
      ctx.fillRect(left, top, at.x(at.ex[i + 1]) - left + 0.6, at.y(at.ey[j]) - top + 0.6);
    }));
  }

  function ticks(values, count) {
    const last = values.length - 1;
    return [...new Set(Array.from({ length: count }, (_, i) => values[Math.round((i * last) / (count - 1))]))];
  }

  function axes(ctx, surface, at) {
    ctx.fillStyle = rw.theme.colour("--muted");
    ctx.font = "11px system-ui, sans-serif";
    ctx.textAlign = "center";
    ctx.textBaseline = "top";
    for (const v of ticks(surface.x, 6)) ctx.fillText(rw.format.value(v, "number"), at.x(at.placeX(v)), ROOM.top + at.high + 6);
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    for (const v of ticks(surface.y, 6)) ctx.fillText(rw.format.value(v, "number"), ROOM.left - 6, at.y(at.placeY(v)));
  }

  function line(ctx, surface, at) {
    ctx.save();
    ctx.beginPath();
    ctx.rect(ROOM.left, ROOM.top, at.wide, at.high);
    ctx.clip();
    ctx.beginPath();
    ctx.moveTo(at.x(at.ex[0]), at.y(surface.most - at.ex[0]));
    const end = at.ex[at.ex.length - 1];
    ctx.lineTo(at.x(end), at.y(surface.most - end));
    ctx.strokeStyle = rw.theme.colour("--series-2");
    ctx.lineWidth = 2;
    ctx.stroke();
    ctx.restore();
  }

  function mark(ctx, surface, at) {
    ctx.beginPath();
    ctx.arc(at.x(surface.mark.x), at.y(surface.mark.y), 6, 0, 2 * Math.PI);
    ctx.fillStyle = rw.theme.colour("--card");
    ctx.fill();
    ctx.strokeStyle = rw.theme.colour("--series-2");
    ctx.lineWidth = 3;
    ctx.stroke();
  }

  function paint(one) {
    const { canvas, surface, found } = one;
    const width = canvas.parentElement.clientWidth;
    if (!width) return;
    const height = Math.round(Math.min(width * 0.8, 380));
    canvas.width = Math.round(width * devicePixelRatio);
    canvas.height = Math.round(height * devicePixelRatio);
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px`, display: "block" });
    const ctx = canvas.getContext("2d");
    ctx.scale(devicePixelRatio, devicePixelRatio);
    one.at = frame(surface, width, height);
    cells(ctx, surface, one.at, found);
    axes(ctx, surface, one.at);
    if (rw.format.isNumber(surface.most)) line(ctx, surface, one.at);
    if (surface.mark) mark(ctx, surface, one.at);
  }

  const nearest = (edge, position) => edge.findIndex((e, i) => i > 0 && position <= e) - 1;

  function words(one, i, j) {
    const { surface } = one;
    return `${rw.format.value(surface.x[i], "number")} and ${rw.format.value(surface.y[j], "number")}: ${rw.format.value(surface.value[j][i], "number")}`;
  }

  function pointed(one, event) {
    const box = one.canvas.getBoundingClientRect();
    const i = nearest(one.at.ex.map(one.at.x), event.clientX - box.left);
    const fromTop = [...one.at.ey].reverse().map(one.at.y);
    const j = one.surface.y.length - 1 - nearest(fromTop, event.clientY - box.top);
    const inside = i >= 0 && j >= 0 && i < one.surface.x.length && j < one.surface.y.length;
    one.told.textContent = inside ? words(one, i, j) : one.rest;
  }

  function rest(surface, found) {
    const range = `${rw.format.value(found.min, "number")} to ${rw.format.value(found.max, "number")}`;
    return surface.mark ? `${range}; the ring: ${surface.mark.x} and ${surface.mark.y}` : range;
  }

  function sentence(surface, found) {
    const show = (v) => rw.format.value(v, "number");
    return `${surface.title}, ${surface.value_label} over ${surface.x_label} and ${surface.y_label}: ${found.count} points from ${show(found.min)} to ${show(found.max)}, mean ${show(found.mean)}.`;
  }

  /** Draws `surface`, one entry of `surfaces`, into `parent`. */
  function create(parent, surface) {
    const found = span(surface);
    const canvas = h("canvas");
    const told = h("span", { class: "legend-value united" });
    const one = { surface, found, canvas, told, rest: rest(surface, found) };
    const plot = h("div", { class: "plot", role: "img", "aria-label": sentence(surface, found) }, canvas);
    const scale = h("span", { class: "scale", "aria-hidden": "true" });
    parent.append(h("figure", { class: "chart" },
      h("figcaption", null, h("h3", null, surface.title), surface.note ? h("p", { class: "note" }, surface.note) : null),
      h("div", { class: "chart-top" }, h("span", { class: "axis-label" }, surface.y_label)),
      plot,
      h("div", { class: "axis-label axis-x" }, surface.x_label),
      h("p", { class: "surface-key" }, scale, h("span", { class: "axis-label" }, surface.value_label), told)));
    told.textContent = one.rest;
    canvas.addEventListener("pointermove", (event) => pointed(one, event));
    canvas.addEventListener("pointerleave", () => { told.textContent = one.rest; });
    live.add(one);
    paint(one);
    new ResizeObserver(() => paint(one)).observe(plot);
    rw.status.chart(found.count);
  }

  const repaint = () => live.forEach(paint);
  rw.theme.onChange(repaint);

  /** Stops repainting the maps within `parent`, which is about to be emptied. */
  function forget(parent) {
    for (const one of live) if (parent.contains(one.canvas)) live.delete(one);
  }

  rw.surface = { create, forget };
})((window.Ropewalk = window.Ropewalk || {}));
