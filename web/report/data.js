// Reads the embedded document, checks its schema and hands it out as a file.
(function (rw) {
  "use strict";
  const SCHEMA = "ropewalk.report/1";

  function text() {
    return document.getElementById("report-data").textContent;
  }

  /** The report document. Throws an error with a readable message if the page does not support it. */
  function load() {
    const report = JSON.parse(text());
    if (report.schema !== SCHEMA) {
      throw new Error(`This page reads "${SCHEMA}", but the data says "${report.schema}".`);
    }
    for (const list of ["runs", "summary", "repeats", "figures", "rows", "surfaces"]) report[list] = report[list] || [];
    return report;
  }

  /** Offers the embedded document as a file named after the report. */
  function download(report) {
    const url = URL.createObjectURL(new Blob([text()], { type: "application/json" }));
    const name = `${rw.dom.slugOf(report.title) || "ropewalk-report"}.json`;
    rw.dom.h("a", { href: url, download: name }).click();
    // The browser reads the address before the click returns or shortly after; a minute is enough.
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  }

  rw.data = { load, download };
})((window.Ropewalk = window.Ropewalk || {}));
