// Rates over intervals of several round trips and enough packets: rates over shorter intervals are mostly noise.
(function (rw) {
  "use strict";
  const { isNumber } = rw.format;
  const ROUND_TRIPS = 4;
  const PACKETS = 40;
  // Minimum number of points of a curve, however long the interval for a quiet curve would be.
  const POINTS = 50;
  // Paths with a smaller share of the data do not affect the interval.
  const MINOR = 0.02;

  const list = (value) => (Array.isArray(value) ? value : []);

  // The length of an interval over which the rates of a run are not mostly noise, s.
  function quietInterval(result) {
    const paths = list(result && result.paths);
    const rates = paths.map((p) => p.throughput_bps).filter(isNumber);
    const minor = MINOR * rates.reduce((sum, rate) => sum + rate, 0);
    const slowest = Math.min(...rates.filter((rate) => rate > 0 && rate >= minor));
    const packet = (result && result.delivered_bytes) / (result && result.delivered_packets);
    const waits = [...paths.map((p) => ROUND_TRIPS * p.srtt_s), (PACKETS * packet * 8) / slowest];
    return Math.max(0, ...waits.filter(isNumber));
  }

  /** The number of samples in an interval, the same for all of `runs`. */
  function samples(runs) {
    const counts = runs.map((run) => {
      const time = list(run.series && run.series.time_s);
      if (time.length < 2) return 1;
      const step = time[1] - time[0];
      const most = Math.floor(time.length / POINTS);
      return Math.min(most, Math.round(quietInterval(run.result) / step));
    });
    return Math.max(1, ...counts);
  }

  /** The end of each interval of `count` samples. */
  function ends(time, count) {
    const all = list(time);
    return all.filter((_, i) => (i + 1) % count === 0 || i === all.length - 1);
  }

  /** The mean of `values` over each interval: samples are equally long, so this is the rate over the interval. */
  function means(values, count) {
    const all = list(values);
    const out = [];
    for (let from = 0; from < all.length; from += count) {
      const known = all.slice(from, from + count).filter(isNumber);
      out.push(known.length ? known.reduce((sum, v) => sum + v, 0) / known.length : null);
    }
    return out;
  }

  /** The smallest and largest of `values` in each interval, so that a mean hides no peak: `{low, high}`. */
  function extremes(values, count) {
    const all = list(values);
    const [low, high] = [[], []];
    for (let from = 0; from < all.length; from += count) {
      const known = all.slice(from, from + count).filter(isNumber);
      low.push(known.length ? Math.min(...known) : null);
      high.push(known.length ? Math.max(...known) : null);
    }
    return { low, high };
  }

  /** Describes the length of an interval, and the band around its means. */
  function note(runs, count, banded) {
    const time = list(runs[0] && runs[0].series && runs[0].series.time_s);
    if (time.length < 2) return null;
    const length = rw.format.value(Number(((time[1] - time[0]) * count).toPrecision(6)), "time");
    return `Each point is the mean over ${length}${banded ? "; the band reaches from the minimum to the maximum in this time" : ""}.`;
  }

  rw.bins = { samples, ends, means, extremes, note };
})((window.Ropewalk = window.Ropewalk || {}));
