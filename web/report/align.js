// Merges series with different x values onto one x axis, as the chart library requires.
(function (rw) {
  "use strict";
  const { isNumber } = rw.format;

  // Points of one series in ascending x. Values that a logarithmic axis cannot show become gaps.
  function points(series, logX, logY) {
    const pairs = [];
    for (let i = 0; i < series.x.length; i += 1) {
      const x = series.x[i];
      if (!isNumber(x) || (logX && x <= 0)) continue;
      const y = series.y[i];
      pairs.push([x, isNumber(y) && !(logY && y <= 0) ? y : null]);
    }
    const sorted = pairs.every((pair, i) => i === 0 || pairs[i - 1][0] <= pair[0]);
    return sorted ? pairs : pairs.sort((a, b) => a[0] - b[0]);
  }

  /**
   * Merges `list` of `{x, y}` into `[xs, ys, ys, …]`, a k-way merge.
   *
   * A series may have several points at one x (a step, a vertical line): that x then occurs as often in `xs`.
   * `undefined` marks "this series has no point here" and is drawn through, `null` is a gap of the data itself.
   */
  function align(list, logX, logY) {
    const all = list.map((series) => points(series, logX, logY));
    const heads = all.map(() => 0);
    const xs = [];
    const columns = all.map(() => []);
    for (;;) {
      let next = Infinity;
      all.forEach((pairs, i) => {
        if (heads[i] < pairs.length) next = Math.min(next, pairs[heads[i]][0]);
      });
      if (next === Infinity) break;
      xs.push(next);
      all.forEach((pairs, i) => {
        const here = heads[i] < pairs.length && pairs[heads[i]][0] === next;
        columns[i].push(here ? pairs[heads[i]][1] : undefined);
        if (here) heads[i] += 1;
      });
    }
    return [xs, ...columns];
  }

  /** The common x axis of series whose x are words: their positions 0, 1, 2… and the words. */
  function categories(list) {
    const words = [];
    for (const series of list) {
      for (const x of series.x) if (!words.includes(x)) words.push(x);
    }
    const placed = list.map((series) => ({ ...series, x: series.x.map((x) => words.indexOf(x)) }));
    return { words, list: placed };
  }

  /** The x of one series of `spec` on its axis: positions where x are words. */
  function positions(series, spec) {
    if (!spec.series.some((s) => s.x.some((x) => typeof x === "string"))) return series.x;
    const { words } = categories(spec.series);
    return series.x.map((x) => words.indexOf(x));
  }

  rw.align = { align, categories, positions };
})((window.Ropewalk = window.Ropewalk || {}));
