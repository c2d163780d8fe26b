// Figures of papers: printed, modelled and simulated values in one chart.
(function (rw) {
  "use strict";

  // The mark shows the source of a number: the paper's are hollow dots, the model is dashed,
  // the simulator is solid, a peer implementation is dotted, a chosen limit is a ring. The colour shows the subject.
  const MARKS = {
    paper: { dash: [2, 3], hollow: true, marker: true, size: 8, width: 1.25 },
    model: { dash: [7, 4] },
    simulated: { dash: [] },
    peer: { dash: [2, 3] },
    limit: { dash: [], hollow: true, marker: true, size: 10, width: 2 },
  };

  // "DAPS, paper" and "DAPS (simulated)" are the same thing from two sources.
  function subject(series) {
    const name = String(series.name ?? "");
    return name.replace(/[\s,;:(\[–-]*\b(paper|model|simulated|simulation|peer)\b[)\]]?\s*$/i, "").trim().toLowerCase();
  }

  function subjects(figure) {
    const found = [];
    for (const series of figure.series || []) {
      if (!found.includes(subject(series))) found.push(subject(series));
    }
    return found;
  }

  // With a single subject, each source gets its own colour.
  function colourOf(series, known) {
    if (known.length > 1) return rw.paint.look(known.indexOf(subject(series))).colour;
    return { paper: "--ink", model: "--series-4", simulated: "--series-1", peer: "--series-2" }[series.source] || "--series-3";
  }

  function convert(series, known) {
    const mark = MARKS[series.source] || { dash: [] };
    const name = String(series.name ?? series.source ?? "");
    const told = name.toLowerCase().includes(String(series.source).toLowerCase());
    return {
      name,
      tag: told ? null : series.source,
      x: series.x || [],
      y: series.y || [],
      style: series.style || "line",
      colour: colourOf(series, known),
      ...mark,
      marker: mark.marker || (series.x || []).length <= 25,
    };
  }

  // Bars do not overlap, and keep the given order.
  const bars = (figure) => (figure.series || []).some((s) => s.style === "bars");

  // Points that a logarithmic axis cannot show are counted.
  function omitted(figure) {
    const isOmitted = (scale, v) => scale === "log" && rw.format.isNumber(v) && v <= 0;
    let count = 0;
    for (const { x = [], y = [] } of figure.series || []) {
      x.forEach((value, i) => { if (isOmitted(figure.x_scale, value) || isOmitted(figure.y_scale, y[i])) count += 1; });
    }
    if (!count) return null;
    return count === 1 ? "One point at or below zero is not shown." : `${count} points at or below zero are not shown.`;
  }

  /** The chart description of one entry of `figures`. */
  function spec(figure) {
    const known = subjects(figure);
    // The paper's hollow dots go on top, where nothing hides them.
    const order = (figure.series || []).filter((s) => s.source !== "paper").concat((figure.series || []).filter((s) => s.source === "paper"));
    return {
      title: figure.title || figure.id,
      note: [figure.note, omitted(figure)].filter(Boolean).join(" ") || null,
      x: { label: figure.x_label || "", kind: "number", log: figure.x_scale === "log" },
      y: { label: figure.y_label || "", kind: "number", log: figure.y_scale === "log" },
      series: (bars(figure) ? figure.series : order).map((series) => convert(series, known)),
      height: 280,
    };
  }

  /** Draws `figures` side by side into `parent`. */
  function draw(parent, figures) {
    const grid = rw.dom.h("div", { class: "charts figures" });
    parent.append(grid);
    for (const figure of figures) {
      const cell = rw.dom.h("div", { class: figures.length === 1 ? "cell whole" : "cell", id: rw.dom.anchor(`figure ${figure.id}`) });
      grid.append(cell);
      rw.chart.create(cell, spec(figure));
    }
  }

  rw.figures = { draw };
})((window.Ropewalk = window.Ropewalk || {}));
