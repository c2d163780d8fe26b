// Which figures of a run's document are shown where. The vocabulary has their names, kinds and meanings.
(function (rw) {
  "use strict";

  // The document has the time; tables of several runs show its share.
  const BLOCKED_SHARE = "blocked_share";

  function blockedShare(document) {
    const blocked = at(document, "receive_buffer.blocked_s");
    const associations = Math.max(1, (at(document, "association_goodput_bps") || []).length);
    const measured = at(document, "duration_s") * associations;
    return rw.format.isNumber(blocked) && measured > 0 ? blocked / measured : null;
  }

  /** Follows "receive_buffer.max_bytes" into a document; null where anything is missing. */
  function at(document, path) {
    if (path === BLOCKED_SHARE) return blockedShare(document);
    let here = document;
    for (const key of path.split(".")) {
      if (here === null || typeof here !== "object") return null;
      here = here[key];
    }
    return here ?? null;
  }

  const { groups, run, path, direction, flow } = rw.vocabulary;
  const documented = run.filter((figure) => figure.path && figure.kind !== "text");
  const HEADLINE = ["goodput_bps", "share_of_bound", "receive_buffer.max_bytes", "app_delay_s.p99"];

  const headline = HEADLINE.map((key) => documented.find((figure) => figure.path === key));
  const comparison = run.filter((figure) => figure.compare && figure.column !== "blocked_s")
    .flatMap((figure) => (figure.path ? [figure] : figure.column === BLOCKED_SHARE ? [{ ...figure, path: BLOCKED_SHARE }] : []));
  // The figures of these groups are shown elsewhere: above the tables, and in a table of their own.
  const detail = groups.filter((title) => title !== "Run" && title !== "Associations")
    .map((title) => ({ title, metrics: documented.filter((figure) => figure.group === title) }));
  const paths = path;
  const directions = direction;
  const flows = flow;
  const tournament = run.filter((figure) => figure.tournament);

  /** For each of `values`, whether it is the best; none is if most are equally good or only one is known. */
  function best(values, better) {
    const numbers = values.filter(rw.format.isNumber);
    const winner = better === "high" ? Math.max(...numbers) : Math.min(...numbers);
    const winners = numbers.filter((v) => v === winner).length;
    const contest = Boolean(better) && winners < numbers.length && (winners === 1 || winners <= numbers.length / 2);
    return values.map((v) => contest && v === winner);
  }

  rw.metrics = { at, best, headline, comparison, detail, paths, directions, flows, tournament };
})((window.Ropewalk = window.Ropewalk || {}));
