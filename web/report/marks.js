// Canvas drawing beside the series: shaded intervals, bands, whiskers, ticks of losses, names of points.
(function (rw) {
  "use strict";
  const FONT_PX = 11;
  // Share of the colour in a band: lines on it stay readable in both themes.
  const BAND_ALPHA = 0.2;
  const TICK_PX = 10;

  const isNumber = (v) => rw.format.isNumber(v);

  // Calls `draw(ctx)` with the frame of the plot as the clip.
  function clipped(u, draw) {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    draw(ctx);
    ctx.restore();
  }

  function span(u, { from, to, label, colour }) {
    const left = Math.max(u.bbox.left, u.valToPos(from, "x", true));
    const right = Math.min(u.bbox.left + u.bbox.width, u.valToPos(to, "x", true));
    if (right <= left) return;
    const { ctx } = u;
    ctx.save();
    ctx.fillStyle = rw.theme.colour(colour || "--shade");
    ctx.globalAlpha = colour ? BAND_ALPHA : 1;
    ctx.fillRect(left, u.bbox.top, right - left, u.bbox.height);
    ctx.globalAlpha = 1;
    ctx.fillStyle = rw.theme.colour("--muted");
    ctx.font = `${FONT_PX * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "bottom";
    // Above the frame: inside, the grid would cross the text.
    if (ctx.measureText(label).width < right - left) ctx.fillText(label, left, u.bbox.top - 3 * devicePixelRatio);
    ctx.restore();
  }

  // The corners of a band: along the upper edge, and back along the lower one. A gap ends a band.
  function stretches(u, series, xs) {
    const all = [[]];
    xs.forEach((x, k) => {
      const [low, high] = [series.low[k], series.high[k]];
      if (!isNumber(x) || !isNumber(low) || !isNumber(high)) {
        all.push([]);
        return;
      }
      all[all.length - 1].push([u.valToPos(x, "x", true), u.valToPos(low, "y", true), u.valToPos(high, "y", true)]);
    });
    return all.filter((points) => points.length > 1);
  }

  function band(u, series, xs) {
    clipped(u, (ctx) => {
      ctx.fillStyle = rw.theme.colour(series.colour);
      ctx.globalAlpha = BAND_ALPHA;
      for (const points of stretches(u, series, xs)) {
        ctx.beginPath();
        for (const [x, , high] of points) ctx.lineTo(x, high);
        for (const [x, low] of points.reverse()) ctx.lineTo(x, low);
        ctx.fill();
      }
    });
  }

  function whiskers(u, series, xs, offset) {
    const px = devicePixelRatio;
    clipped(u, (ctx) => {
      ctx.strokeStyle = rw.theme.colour("--ink");
      ctx.lineWidth = 1.5 * px;
      ctx.beginPath();
      xs.forEach((value, k) => {
        if (!isNumber(series.low[k]) || !isNumber(series.high[k])) return;
        const x = u.valToPos(value, "x", true) + offset;
        const [low, high] = [series.low[k], series.high[k]].map((v) => u.valToPos(v, "y", true));
        ctx.moveTo(x, low);
        ctx.lineTo(x, high);
        for (const end of [low, high]) {
          ctx.moveTo(x - 4 * px, end);
          ctx.lineTo(x + 4 * px, end);
        }
      });
      ctx.stroke();
    });
  }

  // Whiskers stand in the middle of their bar.
  function offsetOf(u, spec, series) {
    const bars = spec.series.filter((s) => s.style === "bars");
    const place = bars.indexOf(series);
    if (place < 0) return 0;
    const width = Math.min((rw.paint.slot(u) * 0.72) / bars.length, 48 * devicePixelRatio);
    return (place + 0.5 - bars.length / 2) * width;
  }

  function each(u, spec, wanted, draw) {
    spec.series.forEach((series, i) => {
      if (!series.low || Boolean(series.whiskers) !== wanted || !u.series[i + 1].show) return;
      draw(series, rw.align.positions(series, spec));
    });
  }

  function ticks(u, spec) {
    const px = devicePixelRatio;
    const bottom = u.bbox.top + u.bbox.height;
    clipped(u, (ctx) => {
      (spec.ticks || []).forEach(({ colour, x }, row) => {
        ctx.strokeStyle = rw.theme.colour(colour);
        ctx.lineWidth = 2 * px;
        ctx.beginPath();
        for (const value of x) {
          const at = u.valToPos(value, "x", true);
          ctx.moveTo(at, bottom - row * TICK_PX * px);
          ctx.lineTo(at, bottom - (row * TICK_PX + TICK_PX - 2) * px);
        }
        ctx.stroke();
      });
    });
  }

  const overlap = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

  // The places around a point in order of preference: right, left, above, below.
  function places(x, y, width, height, gap, px) {
    const box = (left, top) => ({ left, top, right: left + width, bottom: top + height });
    return [
      box(x + gap, y - height / 2), box(x - gap - width, y - height / 2),
      box(x - width / 2, y - gap - height), box(x - width / 2, y + gap),
      box(x + gap, y - height - 2 * px), box(x + gap, y + 2 * px),
      box(x - gap - width, y - height - 2 * px), box(x - gap - width, y + 2 * px),
    ];
  }

  // Names beside points, as far as they hide neither a point nor each other; the legend has all of them.
  function names(u, spec) {
    const px = devicePixelRatio;
    const height = FONT_PX * 1.2 * px;
    const points = spec.series.flatMap((series, i) => {
      if (!series.named || !u.series[i + 1].show) return [];
      const [x, y] = [u.valToPos(series.x[0], "x", true), u.valToPos(series.y[0], "y", true)];
      return [{ series, x, y }];
    });
    const taken = points.map(({ x, y }) => ({ left: x - 5 * px, right: x + 5 * px, top: y - 5 * px, bottom: y + 5 * px }));
    const { ctx, bbox } = u;
    ctx.save();
    ctx.font = `${FONT_PX * px}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    ctx.fillStyle = rw.theme.colour("--ink");
    const inside = (b) => b.left >= bbox.left && b.right <= bbox.left + bbox.width && b.top >= bbox.top && b.bottom <= bbox.top + bbox.height;
    for (const { series, x, y } of points) {
      const width = ctx.measureText(series.name).width;
      const free = places(x, y, width, height, 8 * px, px).find((b) => inside(b) && !taken.some((other) => overlap(b, other)));
      if (!free) continue;
      taken.push(free);
      ctx.fillText(series.name, free.left, free.top + height / 2);
    }
    ctx.restore();
  }

  /** The plugins that draw what `spec` has beside its series. */
  function plugins(spec) {
    const spans = (spec.spans || []).filter((one) => one.to > one.from);
    return [{
      hooks: {
        drawClear: (u) => {
          for (const one of spans) span(u, one);
          each(u, spec, false, (series, xs) => band(u, series, xs));
        },
        draw: (u) => {
          each(u, spec, true, (series, xs) => whiskers(u, series, xs, offsetOf(u, spec, series)));
          ticks(u, spec);
          names(u, spec);
        },
      },
    }];
  }

  rw.marks = { plugins };
})((window.Ropewalk = window.Ropewalk || {}));
