// Creates elements without HTML strings, so that names from a scenario always stay text.
(function (rw) {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";

  function set(element, name, value) {
    if (value === null || value === undefined || value === false) return;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }

  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) set(element, name, value);
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
  }

  /** `h("p", {class: "note"}, "text", child…)`; null children are left out, `onclick` binds a listener. */
  function h(tag, attributes, ...children) {
    return fill(document.createElement(tag), attributes, children);
  }

  /** The same for SVG elements. */
  function svg(tag, attributes, ...children) {
    return fill(document.createElementNS(SVG, tag), attributes, children);
  }

  /** A table in a box of its own that scrolls sideways, and says so while columns are cut off. */
  function scroller(caption, table) {
    const box = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, table);
    const cue = h("p", { class: "cue", hidden: true }, "Scroll sideways for more columns.");
    const look = () => { cue.hidden = box.scrollWidth <= box.clientWidth + 1; };
    new ResizeObserver(look).observe(box);
    return h("div", { class: "scroller" }, cue, box);
  }

  const taken = new Map();

  /** An id fit for an anchor, unique on the page: "CMT-SCTP, 45 kB" becomes "cmt-sctp-45-kb". */
  function anchor(text) {
    const slug = slugOf(text) || "part";
    const count = (taken.get(slug) || 0) + 1;
    taken.set(slug, count);
    return count === 1 ? slug : `${slug}-${count}`;
  }

  function slugOf(text) {
    return String(text ?? "").toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
  }

  rw.dom = { h, svg, scroller, anchor, slugOf };
})((window.Ropewalk = window.Ropewalk || {}));
