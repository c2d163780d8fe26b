// The look of series, and bars in groups.
(function (rw) {
  "use strict";

  // Colours distinguish series; dashes distinguish them without colour.
  const COLOURS = 6;
  const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]];

  /** The look of the i-th series of equal rank: six colours, then the same again with another dash. */
  function look(index) {
    return {
      colour: `--series-${(index % COLOURS) + 1}`,
      dash: DASHES[Math.floor(index / COLOURS) % DASHES.length],
    };
  }

  // The room of one group of bars: the least distance between neighbours, or the whole width for one group.
  function slot(u) {
    const xs = u.data[0];
    let least = Infinity;
    for (let i = 1; i < xs.length; i += 1) {
      const px = Math.abs(u.valToPos(xs[i], "x", true) - u.valToPos(xs[i - 1], "x", true));
      if (px > 0) least = Math.min(least, px);
    }
    return least === Infinity ? u.bbox.width / 3 : least;
  }

  /** A path builder for bars: the `index`-th of `count` bars beside each other at every x. */
  function bars(index, count) {
    return (u, series, from, to) => {
      const path = new Path2D();
      const width = Math.min((slot(u) * 0.72) / count, 48 * devicePixelRatio);
      const base = u.valToPos(Math.max(0, u.scales.y.min), "y", true);
      for (let i = from; i <= to; i += 1) {
        const y = u.data[series][i];
        if (y === null || y === undefined) continue;
        const left = u.valToPos(u.data[0][i], "x", true) + (index - count / 2) * width;
        const top = u.valToPos(y, "y", true);
        path.rect(left + width * 0.06, Math.min(top, base), width * 0.88, Math.abs(base - top));
      }
      return { stroke: path, fill: path, gaps: null, clip: null, band: null, flags: 0 };
    };
  }

  rw.paint = { look, bars, slot };
})((window.Ropewalk = window.Ropewalk || {}));
