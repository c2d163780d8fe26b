// The vocabulary of results: where each figure lives in a run's document, its kind, and which way is better.
(function (rw) {
  "use strict";

  /** Follows "receive_buffer.max_bytes" into a document; null where anything is missing. */
  function at(document, path) {
    let here = document;
    for (const key of path.split(".")) {
      if (here === null || typeof here !== "object") return null;
      here = here[key];
    }
    return here ?? null;
  }

  const metric = (path, label, kind, better, means) => ({ path, label, kind, better, means });

  const GOODPUT = metric("goodput_bps", "Goodput", "rate", "high", "in-order data handed to the application, per second");
  const SHARE = metric("share_of_bound", "Share of the bound", "ratio", "high", "goodput over the flow-control bound that windows and buffer set");
  const PEAK = metric("receive_buffer.max_bytes", "Peak buffer", "bytes", "low", "largest occupancy of the receive buffer by out-of-order data");
  const DELAY = metric("app_delay_s.p99", "Delay, p99", "time", "low", "first transmission to in-order delivery; 99 of 100 packets are faster");

  const BLOCKED = metric("receive_buffer.blocked_s", "Blocked", "time", "low", "time in which a path had congestion window and there was data, but the receive window was closed");
  const WAIT = metric("blocking_time_s.p99", "Blocking, p99", "time", "low", "arrival to in-order delivery; 99 of 100 packets are faster");
  const DELAY_MEAN = metric("app_delay_s.mean", "Delay, mean", "time", "low", "first transmission to in-order delivery");
  const DISORDER = metric("out_of_order.ratio", "Out of order", "ratio", "low", "stored packets over non-duplicate packets received");
  const SPURIOUS = metric("spurious_retransmissions", "Spurious retransmissions", "count", "low", "retransmissions of data that had arrived");
  const BOUND = metric("flow_control_bound_bps", "Physical limit", "rate", null, "no scheduler can be faster with these windows and this buffer");

  const headline = [GOODPUT, SHARE, PEAK, DELAY];
  const comparison = [GOODPUT, SHARE, PEAK, BLOCKED, WAIT, DELAY_MEAN, DELAY, DISORDER, SPURIOUS];

  // The distribution of a time per packet.
  const spread = (title, key, means) => ({
    title,
    metrics: [
      metric(`${key}.mean`, "Mean", "time", "low", means),
      metric(`${key}.p50`, "Median", "time", "low", ""),
      metric(`${key}.p99`, "p99", "time", "low", ""),
      metric(`${key}.max`, "Largest", "time", "low", ""),
    ],
  });

  const detail = [
    { title: "Transfer", metrics: [GOODPUT, BOUND, SHARE, SPURIOUS] },
    {
      title: "Receive buffer",
      metrics: [
        PEAK,
        metric("receive_buffer.p99_bytes", "Occupancy, p99", "bytes", "low", "weighted by time"),
        metric("receive_buffer.mean_bytes", "Occupancy, mean", "bytes", "low", "weighted by time"),
        BLOCKED,
        DISORDER,
        metric("out_of_order.max_bytes", "Out of order, peak", "bytes", "low", "peak of stored bytes"),
      ],
    },
    spread("Blocking time per packet", "blocking_time_s", "arrival to in-order delivery"),
    spread("Delay per packet", "app_delay_s", "first transmission to in-order delivery"),
    {
      title: "Engine",
      metrics: [
        metric("engine.events", "Events", "count", null, ""),
        metric("engine.packets", "Packets", "count", null, ""),
        metric("engine.cpu_s", "Processor time", "time", null, ""),
        metric("engine.packets_per_cpu_s", "Packets per processor second", "count", null, ""),
      ],
    },
  ];

  const paths = [
    metric("throughput_bps", "Throughput", "rate", null, ""),
    metric("utilisation", "Utilisation", "ratio", null, "delivered bits over capacity"),
    metric("srtt_s", "Smoothed RTT", "time", null, ""),
    metric("cwnd_bytes", "Window", "bytes", null, "congestion window at the end"),
    metric("delivered_bytes", "Delivered", "bytes", null, ""),
    metric("sent_packets", "Sent", "count", null, "packets"),
    metric("retransmitted_packets", "Retransmitted", "count", null, "packets"),
    metric("lost_packets", "Lost", "count", null, "packets"),
  ];

  /** For each of `values`, whether it is the best; none is if all are equal or only one is known. */
  function best(values, better) {
    const numbers = values.filter(rw.format.isNumber);
    const winner = better === "high" ? Math.max(...numbers) : Math.min(...numbers);
    const contest = Boolean(better) && numbers.some((v) => v !== winner);
    return values.map((v) => contest && v === winner);
  }

  rw.metrics = { at, best, headline, comparison, detail, paths };
})((window.Ropewalk = window.Ropewalk || {}));
