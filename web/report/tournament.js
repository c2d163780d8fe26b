// A tournament of schedulers: the ranking, the winner of each match, and every match in figures.
(function (rw) {
  "use strict";
  const { h } = rw.dom;
  // Six colours distinguish schedulers; further ones are hollow, then small.
  const COLOURS = 6;
  // Below this share of the best, a cell has no colour: the interesting values are above it.
  const FAINT = 0.4;
  // Above this number, matches are not drawn one by one.
  const MOST_MATCHES = 60;

  const MEASURES = [
    { name: "Both", of: (e) => e.goodput_ratio * e.delay_ratio, means: "goodput over the best goodput, times the best p99 delay over the scheduler's own" },
    { name: "Goodput", of: (e) => e.goodput_ratio, means: "goodput over the best goodput of the match" },
    { name: "Delay", of: (e) => e.delay_ratio, means: "the best p99 delay of the match over the scheduler's own" },
  ];

  const mean = (estimate) => (estimate ? estimate.mean : null);
  // A mean of counts may be a fraction.
  const kindOf = (figure) => (figure.kind === "count" ? "number" : figure.kind);
  const COLUMNS = [
    ...rw.metrics.tournament.map((figure) => ({ label: figure.label, kind: kindOf(figure), better: figure.better, of: (e) => mean(e[figure.column]) })),
    { label: "Of the best path", kind: "ratio", better: "high", of: (e) => mean(e.gain) },
    { label: "Score", kind: "ratio", better: "high", of: MEASURES[0].of },
  ];

  const nameOf = (match) => `${match.scenario}, ${match.setting}`;

  // A table with a row head in front of cells that are elements already.
  function table(caption, heads, rows, more) {
    return rw.dom.scroller(caption,
      h("table", { class: `wide ${more || ""}` },
        h("caption", null, caption),
        h("thead", null, h("tr", null, h("th", { scope: "col" }, "Scheduler"), heads.map((head) => h("th", { scope: "col", class: "num" }, head)))),
        h("tbody", null, rows.map(([name, ...cells]) => h("tr", null, h("th", { scope: "row" }, name), cells)))));
  }

  const percent = (share) => `${(100 * share).toFixed(1)}\u202f%`;
  const cell = (text) => h("td", { class: "num" }, text);

  function rankingTable(ranking) {
    const of = (ranking.setting ? ` under ${ranking.setting}` : "") + (ranking.paths ? ` over ${ranking.paths} paths` : "");
    const many = ranking.matches === 1 ? "match" : "matches";
    const heads = ["Score", "95 % interval", "First", "Goodput", "Delay", "Near best goodput", "Near best delay", "Near both", "Wins", "Keeps best path", "Worst goodput", "Worst delay", "Worst of best path"];
    const worst = (w) => h("td", { class: "num" }, percent(w.ratio),
      h("span", { class: "unit" }, ranking.setting ? w.scenario : nameOf(w)));
    const rows = ranking.ranks.map((r) => [
      r.scheduler, cell(percent(r.score)),
      ...(r.spread ? [cell(`${percent(r.spread.score[0])} to ${percent(r.spread.score[1])}`), cell(percent(r.spread.first))] : [cell(rw.format.NONE), cell(rw.format.NONE)]),
      ...[r.goodput, r.delay].map((share) => cell(percent(share))),
      ...[r.near_goodput, r.near_delay, r.near_both, r.wins].map((count) => cell(String(count))),
      cell(rw.format.isNumber(r.kept) ? `${r.kept} of ${ranking.matches}` : rw.format.NONE),
      worst(r.worst_goodput), worst(r.worst_delay), r.worst_gain ? worst(r.worst_gain) : cell(rw.format.NONE),
    ]);
    return table(`Ranking over ${ranking.matches} ${many}${of}`, heads, rows, "ranking");
  }

  // One point for each scheduler: the further up and to the right, the better.
  function plane(ranking) {
    return {
      title: "Goodput against delay",
      note: "Geometric means over all matches. The best schedulers are at the top right: to the right, the delay (99th percentile) is nearer to the best of the match; towards the top, the goodput is.",
      x: { label: "Best delay over own delay", kind: "ratio" },
      y: { label: "Goodput over best goodput", kind: "ratio" },
      series: ranking.ranks.map((rank, i) => ({
        name: rank.scheduler, tag: null, x: [rank.delay], y: [rank.goodput], style: "points",
        colour: rw.paint.look(i).colour, hollow: i >= COLOURS && i < 2 * COLOURS, size: i < 2 * COLOURS ? 10 : 6, named: true,
      })),
      height: 420,
    };
  }

  function heat(share) {
    if (!rw.format.isNumber(share)) return h("td", { class: "num" }, rw.format.NONE);
    const depth = Math.max(0, (share - FAINT) / (1 - FAINT));
    const text = share > 0 ? String(Math.round(100 * share)) : "failed";
    return h("td", { class: share === 1 ? "num heat top" : "num heat", style: `--heat: ${(45 * depth).toFixed(1)}%` }, text);
  }

  function map(tournament, measure) {
    const order = tournament.rankings[0].ranks.map((rank) => rank.scheduler);
    const entry = (match, name) => match.entries.find((e) => e.scheduler === name);
    const share = (match, name) => (entry(match, name) ? measure.of(entry(match, name)) : null);
    const heads = tournament.matches.map((m) => h("span", { class: "upright" }, m.scenario, h("span", { class: "unit" }, m.setting)));
    const rows = order.map((name) => [name, ...tournament.matches.map((match) => heat(share(match, name)))]);
    return table(`${measure.name} in each match, in % of the best`, heads, rows, "heatmap");
  }

  function heatmap(tournament) {
    const room = h("div", null);
    const note = h("p", { class: "note" });
    const show = (measure) => {
      room.replaceChildren(map(tournament, measure));
      note.textContent = `Shown: ${measure.means}. Schedulers stand in the order of the ranking.`;
    };
    const choices = MEASURES.map((measure, i) => h("label", { class: "choice" },
      h("input", { type: "radio", name: "measure", checked: i === 0, onchange: () => show(measure) }), measure.name));
    show(MEASURES[0]);
    return h("section", { "aria-labelledby": "who-wins-where" }, h("h2", { id: "who-wins-where" }, "Who wins where"),
      h("fieldset", { class: "chooser" }, h("legend", null, "Measure"), choices), note, room);
  }

  function columnOf(entries, column, scales) {
    const values = entries.map(column.of);
    const { unit, cells } = rw.format.column(values, column.kind, scales);
    const wins = rw.metrics.best(values, column.better);
    return {
      head: [column.label, unit ? h("span", { class: "unit" }, unit) : null],
      cells: cells.map((text, i) => h("td", { class: wins[i] ? "num best" : "num" }, text, wins[i] ? h("span", { class: "hidden" }, " (best)") : null)),
    };
  }

  function one(match) {
    const entries = [...match.entries].sort((a, b) => MEASURES[0].of(b) - MEASURES[0].of(a));
    const scales = rw.format.shared(COLUMNS.map((column) => [column.kind, entries.map(column.of)]));
    const columns = COLUMNS.map((column) => columnOf(entries, column, scales));
    const failed = (e) => (e.failures.length ? `${e.scheduler} (${e.failures.length} failed)` : e.scheduler);
    const rows = entries.map((e, i) => [failed(e), ...columns.map((c) => c.cells[i])]);
    return h("details", { class: "scenario match" }, h("summary", null, nameOf(match)),
      table(`${nameOf(match)}, preset ${match.preset}`, columns.map((c) => c.head), rows));
  }

  /** Draws the document `tournament` of a report into `parent`. */
  function draw(parent, tournament) {
    const [first, ...others] = tournament.rankings;
    if (!first || !first.ranks.length) return;
    const [winner] = first.ranks;
    const lead = `${winner.scheduler} comes first: ${percent(winner.goodput)} of the best goodput and ${percent(winner.delay)} of the best delay, on average over ${first.matches} matches.`;
    const chart = h("div", { class: "cell whole" });
    const note = `Geometric means over the matches. Near: within ${Math.round(100 * tournament.near)} % of the best of the match. Score: goodput times delay, both relative to the best. The interval of the score and the share of first places come from drawing the scenarios again (bootstrap). Keeps best path: at least ${Math.round(100 * tournament.kept)} % of its goodput.`;
    const many = tournament.matches.length > MOST_MATCHES;
    parent.append(h("p", { class: "lead" }, lead), rankingTable(first), h("p", { class: "note" }, note), h("div", { class: "charts" }, chart),
      many ? null : heatmap(tournament), ...others.map(rankingTable));
    rw.chart.create(chart, plane(first));
    if (many) {
      parent.append(h("p", { class: "note" }, `${tournament.matches.length} matches: tournament --json has the figures of each.`));
      return;
    }
    parent.append(h("section", { "aria-labelledby": "matches" }, h("h2", { id: "matches" }, "Matches"),
      h("p", { class: "note" }, tournament.seeds === 1 ? "One run of each scheduler." : `Means of ${tournament.seeds} runs of each scheduler.`),
      tournament.matches.map(one)));
  }

  rw.tournament = { draw };
})((window.Ropewalk = window.Ropewalk || {}));
