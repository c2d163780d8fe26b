// Numbers with units, in the form people say them: 1.52 Mbit/s, 45 kB, 20 ms. kB is 1000 bytes.
(function (rw) {
  "use strict";
  const NONE = "–";
  const THIN = "\u202f";

  // Each kind of quantity: its units, largest first, as factors of the base unit that the data carries.
  const KINDS = {
    rate: [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]],
    bytes: [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]],
    time: [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]],
    ratio: [[0.01, "%"]],
    count: [[1, ""]],
    number: [[1, ""]],
  };

  const KIND_OF_UNIT = { "bit/s": "rate", B: "bytes", byte: "bytes", bytes: "bytes", s: "time" };

  function isNumber(value) {
    return typeof value === "number" && Number.isFinite(value);
  }

  /** The unit in which `largest` reads well: `{factor, unit}`. */
  function pick(kind, largest) {
    const units = KINDS[kind] || KINDS.number;
    const size = Math.abs(largest);
    const found = units.find(([factor]) => size >= factor) || units[units.length - 1];
    // Zero is shown in the base unit.
    const [factor, unit] = size > 0 ? found : units.find(([own]) => own === 1) || units[0];
    return { factor, unit };
  }

  function decimalsFor(largest, significant) {
    if (!(largest > 0)) return 0;
    return Math.min(12, Math.max(0, significant - 1 - Math.floor(Math.log10(largest))));
  }

  function fixed(value, decimals) {
    return value
      .toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals })
      .replaceAll(",", THIN)
      .replace(/^-/, "−");
  }

  // Short for a plain number: four significant digits, powers of ten when it is tiny or huge.
  function plain(value, significant = 4) {
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-4 || size >= 1e9)) return scientific(value);
    const decimals = Number.isInteger(value) ? 0 : decimalsFor(size, significant);
    const text = fixed(value, decimals);
    return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  }

  function scientific(value) {
    const [mantissa, exponent] = value.toExponential(2).split("e");
    const digits = String(Number(exponent)).replace("-", "⁻").replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]);
    return `${mantissa.replace(/\.?0+$/, "").replace("-", "−")}·10${digits}`;
  }

  function join(text, unit) {
    return unit ? `${text}${THIN}${unit}` : text;
  }

  /** One value on its own, with the unit that suits it. */
  function value(number, kind) {
    if (!isNumber(number)) return NONE;
    if (kind === "count") return fixed(number, 0);
    const { factor, unit } = pick(kind, number);
    return join(plain(number / factor), unit);
  }

  /** Value and unit apart, for tiles that set them in different sizes. */
  function parts(number, kind) {
    if (!isNumber(number)) return { text: NONE, unit: "" };
    const { factor, unit } = pick(kind, number);
    return { text: plain(number / factor, kind === "ratio" ? 3 : 4), unit };
  }

  const median = (sizes) => sizes.sort((a, b) => a - b)[Math.floor(sizes.length / 2)] || 0;

  /** One unit for all times of a table, from pairs of kind and values: ms beside s would be misread. */
  function shared(columns) {
    const times = columns.filter(([kind]) => kind === "time").flatMap(([, values]) => values);
    const sizes = times.filter((v) => isNumber(v) && v !== 0).map(Math.abs);
    return new Map([["time", pick("time", median(sizes))]]);
  }

  /**
   * A column of values in one unit with equally many decimals, so that the eye can compare them. `scales`, from
   * `shared`, has the unit of each kind; without it the largest value determines the unit. `halves` are the values'
   * intervals: digits that the smallest one leaves open are not shown.
   */
  function column(values, kind, scales, halves = []) {
    const sizes = values.filter(isNumber).map(Math.abs);
    const largest = sizes.length ? Math.max(...sizes) : 0;
    const { factor, unit } = (scales && scales.get(kind)) || pick(kind, largest);
    const intervals = halves.filter((half) => isNumber(half) && half > 0);
    const known = intervals.length ? decimalsFor(Math.min(...intervals) / factor, 2) : 12;
    const decimals = kind === "count" ? 0 : Math.min(kind === "ratio" ? 2 : 12, decimalsFor(largest / factor, 4), known);
    const cells = values.map((v) => (isNumber(v) ? fixed(v / factor, decimals) : NONE));
    return { unit: sizes.length ? unit : "", cells, factor, decimals };
  }

  /** A tick or legend value in a unit already chosen. */
  function scaled(number, scale) {
    return isNumber(number) ? plain(Number((number / scale.factor).toPrecision(6))) : "";
  }

  /** Values of one row in the row's own unit: base units are scaled, all others stay as they are. */
  function row(values, unit) {
    const kind = KIND_OF_UNIT[unit] || (unit === "ratio" ? "ratio" : null);
    const sizes = values.filter(isNumber).map(Math.abs);
    const scale = kind ? pick(kind, Math.max(0, ...sizes)) : { factor: 1, unit: unit || "" };
    const cells = values.map((v) => (isNumber(v) ? plain(v / scale.factor) : words(v)));
    return { unit: scale.unit, cells };
  }

  function words(v) {
    if (v === null || v === undefined || v === "") return NONE;
    if (typeof v === "boolean") return v ? "yes" : "no";
    return String(v);
  }

  /** A difference as a fraction of the paper's value: 0.05 reads "+5 %". Text is shown as it is. */
  function difference(v, unit = "%") {
    if (!isNumber(v)) return words(v);
    const percent = v * 100;
    const text = fixed(Math.abs(percent), Math.abs(percent) < 10 ? 1 : 0);
    const sign = Number(text.replaceAll(THIN, "")) === 0 ? "" : percent > 0 ? "+" : "−";
    return `${sign}${text}${THIN}${unit}`;
  }

  /** The difference of a row of `reproduce`: percentages differ by percentage points. */
  function rowDifference(row) {
    return isNumber(row.difference_points) ? difference(row.difference_points, "points") : difference(row.difference);
  }

  rw.format = { NONE, isNumber, pick, value, parts, shared, column, fixed, scaled, row, words, difference, rowDifference };
})((window.Ropewalk = window.Ropewalk || {}));
