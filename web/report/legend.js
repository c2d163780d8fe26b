// The legend: one button per series that shows its mark, its name and the value under the cursor.
(function (rw) {
  "use strict";
  const { h, svg } = rw.dom;

  function mark(series) {
    const colour = `stroke: var(${series.colour})`;
    const children = [];
    if (series.style === "bars") {
      const inside = series.hollow ? "none" : `var(${series.colour})`;
      children.push(svg("rect", { x: 7, y: 2, width: 12, height: 10, style: `${colour}; fill: ${inside}`, "stroke-width": 1.5 }));
    } else {
      if (series.style !== "points") {
        const dash = series.dash && series.dash.length ? series.dash.join(" ") : null;
        children.push(svg("path", { d: "M1 7h24", style: colour, "stroke-dasharray": dash, "stroke-width": series.width || 1.75 }));
      }
      if (series.style === "points" || series.marker) {
        const inside = series.hollow ? "none" : `var(${series.colour})`;
        const radius = series.size ? Math.max(2, series.size / 2) : 3.5;
        children.push(svg("circle", { cx: 13, cy: 7, r: radius, style: `${colour}; fill: ${inside}`, "stroke-width": 1.5 }));
      }
    }
    return svg("svg", { class: "mark", viewBox: "0 0 26 14", width: 26, height: 14, "aria-hidden": "true", fill: "none" }, children);
  }

  // `united`: values have a unit and need more space.
  function entry(series, index, united, toggle) {
    const value = h("span", { class: united ? "legend-value united" : "legend-value" });
    const button = h("button",
      { type: "button", class: "legend-entry", "aria-pressed": String(!series.hidden), hidden: series.hidden, onclick: () => toggle(index) },
      mark(series),
      h("span", null, series.name),
      series.tag ? h("span", { class: "tag" }, series.tag) : null,
      value);
    return { button, value };
  }

  /** Builds the legend; `toggle(index)` is called when the reader switches a series on or off. */
  function create(spec, toggle) {
    const entries = spec.series.map((series, index) => entry(series, index, Boolean(spec.y.kind) && spec.y.kind !== "number", toggle));
    const where = h("span", { class: "legend-where" });
    const element = h("div", { class: "legend", role: "group", "aria-label": `Series of ${spec.title}` },
      entries.map((e) => e.button), where);
    return {
      element,
      pressed: (index, on) => entries[index].button.setAttribute("aria-pressed", String(on)),
      listed: (index, on) => { entries[index].button.hidden = !on; },
    values: (position, texts) => {
        where.textContent = position;
        entries.forEach((e, i) => { e.value.textContent = texts[i] || ""; });
      },
    };
  }

  rw.legend = { create };
})((window.Ropewalk = window.Ropewalk || {}));
