//! The canonical text of a scenario. It contains every value, so that results can include it and later changes
//! of defaults do not alter its meaning.

mod wifi;

use std::fmt::{Display, Write};

use ropewalk_base::{Duration, Rate, Time};

use crate::quantity::{duration_text, rate_text, size_text};
use crate::types::{
    Application, Capacity, Cross, CrossKind, Discipline, InitialSsthresh, InitialWindow, Jitter,
    JitterShape, Limit, Link, LinkSide, Loss, Outage, Path, Queue, Reorder, Scenario,
    SchedulerOptions, SctpOptions, Step, Target, TcpOptions, Transfer,
};

impl Scenario {
    /// The scenario as TOML. Parsing it gives an equal scenario if trace files have the same names. Equal
    /// scenarios have equal texts.
    pub fn to_toml(&self) -> String {
        let mut out = Out::default();
        transfer(&mut out, &self.transfer);
        scheduler(&mut out, &self.scheduler);
        if self.sctp != SctpOptions::default() {
            sctp(&mut out, &self.sctp);
        }
        if self.tcp != TcpOptions::default() {
            tcp(&mut out, &self.tcp);
        }
        for each in &self.paths {
            path(&mut out, each, &self.links);
        }
        for each in &self.links {
            link(&mut out, each);
        }
        for each in &self.cross {
            cross(&mut out, each, self);
        }
        for each in &self.stations {
            wifi::station(&mut out, each);
        }
        out.section("[world]");
        out.plain("associations", self.world.associations);
        out.text("stagger", duration_text(self.world.stagger));
        out.section("[record]");
        out.text("interval", duration_text(self.record.interval));
        out.plain("decisions", self.record.decisions);
        out.plain("packets", self.record.packets);
        out.0
    }
}

/// TOML under construction.
#[derive(Default)]
struct Out(String);

impl Out {
    fn section(&mut self, heading: &str) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.0.push_str(heading);
        self.0.push('\n');
    }

    /// Writes a number, a boolean, or a TOML value.
    fn plain(&mut self, key: &str, value: impl Display) {
        writeln!(self.0, "{key} = {value}").expect("a string takes everything");
    }

    /// Writes a quoted text.
    fn text(&mut self, key: &str, value: impl Display) {
        self.plain(key, quoted(value));
    }

    fn number(&mut self, key: &str, value: f64) {
        self.plain(key, number(value));
    }

    fn opt_plain(&mut self, key: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.plain(key, value);
        }
    }

    fn opt_text(&mut self, key: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    fn opt_packets(&mut self, key: &str, value: Option<u32>) {
        self.opt_text(key, value.map(|n| format!("{n} packets")));
    }
}

/// Formats a basic TOML string.
fn quoted(value: impl Display) -> String {
    let mut text = String::from("\"");
    for c in value.to_string().chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_control() => {
                write!(text, "\\u{:04X}", u32::from(c)).expect("a string takes everything");
            }
            c => text.push(c),
        }
    }
    text + "\""
}

/// The shortest text that parses to the same number, always in the form of a float.
fn number(value: f64) -> String {
    format!("{value:?}")
}

fn numbers(values: &[f64]) -> String {
    bracketed(values.iter().map(|v| number(*v)))
}

fn bracketed(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

fn time(at: Time) -> String {
    quoted(duration_text(at.since(Time::ZERO)))
}

fn duration(d: Duration) -> String {
    quoted(duration_text(d))
}

fn rate(r: Rate) -> String {
    quoted(rate_text(r))
}

fn transfer(out: &mut Out, t: &Transfer) {
    out.section("[transfer]");
    out.text("protocol", t.protocol);
    out.text("duration", duration_text(t.duration));
    out.opt_text("bytes", t.bytes.map(size_text));
    out.text("warmup", duration_text(t.warmup));
    out.plain("seed", t.seed);
    out.text("receive_buffer", size_text(t.receive_buffer));
    out.text("packet", size_text(t.packet.into()));
    out.text("preset", t.preset);
    out.plain("guard", t.guard);
    out.text("congestion", t.congestion);
    out.plain("fast_convergence", t.fast_convergence);
    out.text("window_manager", t.window_manager);
    match t.application {
        Application::Bulk => out.text("application", "bulk"),
        Application::Steady { rate: r, message } => {
            let message = quoted(size_text(message));
            out.plain("application", format!("{{ rate = {}, message = {message} }}", rate(r)));
        }
    }
    out.plain("streams", t.streams);
    out.opt_text("message", t.message.map(size_text));
    out.plain("unordered", t.unordered);
}

fn scheduler(out: &mut Out, s: &SchedulerOptions) {
    out.section("[scheduler]");
    out.text("name", s.label());
    out.text("forward_delay", s.forward_delay);
    out.number("delay_error", s.delay_error);
    out.text("quantum", duration_text(s.quantum));
    out.plain("period_cap", s.period_cap);
    out.text("windows", s.windows);
    out.text("capacity", s.capacity);
    out.text("when_blocked", s.when_blocked);
    out.plain("opportunistic", s.opportunistic);
    out.plain("penalise", s.penalise);
    out.plain("in_slow_start", s.in_slow_start);
    out.text("quota", s.quota);
    out.text("weights", s.weights);
    out.plain("copies", s.copies);
    out.plain("bas_with_delay", s.bas_with_delay);
    out.text("otias_form", s.otias_form);
    out.number("blest_lambda", s.blest_lambda);
    out.number("blest_lambda_min", s.blest_lambda_min);
    out.number("blest_lambda_max", s.blest_lambda_max);
    out.number("ecf_beta", s.ecf_beta);
    out.number("stms_gain", s.stms_gain);
    out.text("linux_burst", size_text(s.linux_burst));
    out.number("lay_cushion", s.lay_cushion);
    out.opt_text("latency_budget", s.latency_budget.map(duration_text));
}

fn sctp(out: &mut Out, s: &SctpOptions) {
    out.section("[sctp]");
    out.opt_packets("sack_every", s.sack_every);
    out.opt_text("sack_delay", s.sack_delay.map(duration_text));
    out.opt_text("sack_count", s.sack_count);
    out.opt_plain("delayed_ack_for_cmt", s.delayed_ack_for_cmt);
    out.opt_text("initial_window", s.initial_window.map(initial_window));
    out.opt_text("initial_ssthresh", s.initial_ssthresh.map(initial_ssthresh));
    out.opt_packets("min_ssthresh", s.min_ssthresh);
    out.opt_text("window_rounding", s.window_rounding);
    out.opt_packets("byte_counting_limit", s.byte_counting_limit);
    out.opt_plain("cwnd_growth_when_full_only", s.cwnd_growth_when_full_only);
    out.opt_plain("ecn", s.ecn);
    out.opt_packets("max_burst", s.max_burst);
    out.opt_text("rto_initial", s.rto_initial.map(duration_text));
    out.opt_text("rto_min", s.rto_min.map(duration_text));
    out.opt_text("rto_max", s.rto_max.map(duration_text));
    out.opt_text("recovery", s.recovery);
    out.opt_plain("fast_retransmit_threshold", s.fast_retransmit_threshold);
    out.opt_plain("split_fast_retransmit", s.split_fast_retransmit);
    out.opt_text("cwnd_update", s.cwnd_update);
    out.opt_text("retransmission", s.retransmission);
    out.opt_plain("hold_data_until_confirmed", s.hold_data_until_confirmed);
    out.opt_text("heartbeat_interval", s.heartbeat_interval.map(duration_text));
    out.opt_text("probe_interval", s.probe_interval.map(duration_text));
    out.opt_plain("path_max_retrans", s.path_max_retrans);
    out.opt_plain("association_max_retrans", s.association_max_retrans);
    out.opt_plain("pf_threshold", s.pf_threshold);
    out.opt_text("window_counted_in", s.window_counted_in);
    out.opt_text("window_check", s.window_check);
}

fn tcp(out: &mut Out, t: &TcpOptions) {
    out.section("[tcp]");
    out.opt_packets("ack_every", t.ack_every);
    out.opt_text("ack_delay", t.ack_delay.map(duration_text));
    out.opt_text("subflow_ack", t.subflow_ack);
    out.opt_text("rto_formula", t.rto_formula);
    out.opt_plain("timestamps", t.timestamps);
    out.opt_plain("sack", t.sack);
    out.opt_text("recovery", t.recovery);
    out.opt_plain("duplicate_threshold", t.duplicate_threshold);
    out.opt_text("reinjection", t.reinjection);
    out.opt_text("initial_window", t.initial_window.map(initial_window));
    out.opt_text("initial_ssthresh", t.initial_ssthresh.map(size_text));
    out.opt_text("rto_initial", t.rto_initial.map(duration_text));
    out.opt_text("rto_min", t.rto_min.map(duration_text));
    out.opt_text("rto_max", t.rto_max.map(duration_text));
    out.opt_text("probe_interval", t.probe_interval.map(duration_text));
    out.opt_plain("ack_burst_loss", t.ack_burst_loss);
    out.opt_plain("ack_burst_loss_max", t.ack_burst_loss_max);
    out.opt_plain("data_waits", t.data_waits);
}

fn initial_window(window: InitialWindow) -> String {
    match window {
        InitialWindow::Auto => "auto".into(),
        InitialWindow::Bytes(bytes) => size_text(bytes),
        InitialWindow::Packets(n) => format!("{n} packets"),
    }
}

fn initial_ssthresh(ssthresh: InitialSsthresh) -> String {
    match ssthresh {
        InitialSsthresh::ReceiveBuffer => "receive-buffer".into(),
        InitialSsthresh::Unlimited => "unlimited".into(),
        InitialSsthresh::Bytes(bytes) => size_text(bytes),
    }
}

fn path(out: &mut Out, p: &Path, links: &[Link]) {
    out.section("[[path]]");
    out.text("name", &p.name);
    sides(out, &p.up, &p.down, &p.outages);
    out.plain("cost", p.cost);
    out.number("weight", p.weight);
    if let Some(packets) = p.window_limit {
        out.text("window_limit", format!("{packets} packets"));
    }
    out.number("delay_error", p.delay_error);
    out.plain("via", bracketed(p.via.iter().map(|at| quoted(&links[*at].name))));
    out.text("mtu", size_text(p.mtu.into()));
    out.opt_plain("wifi", p.wifi.map(wifi::wifi));
}

fn link(out: &mut Out, l: &Link) {
    out.section("[[link]]");
    out.text("name", &l.name);
    sides(out, &l.up, &l.down, &l.outages);
}

fn sides(out: &mut Out, up: &LinkSide, down: &LinkSide, outages: &[Outage]) {
    capacity(out, "rate", "trace", &up.capacity);
    capacity(out, "rate_down", "trace_down", &down.capacity);
    out.text("delay_up", duration_text(up.delay));
    out.text("delay_down", duration_text(down.delay));
    out.plain("queue", queue(&up.queue));
    out.plain("queue_down", queue(&down.queue));
    out.plain("loss", loss(&up.loss));
    out.plain("loss_down", loss(&down.loss));
    out.opt_plain("jitter", up.jitter.map(jitter));
    out.opt_plain("jitter_down", down.jitter.map(jitter));
    out.opt_plain("reorder", up.reorder.map(reorder));
    out.number("duplicate", up.duplicate);
    out.number("corrupt", up.corrupt);
    out.plain("steps", steps(&up.steps, &down.steps));
    let outage = |o: &Outage| format!("{{ from = {}, to = {} }}", time(o.from), time(o.to));
    out.plain("outages", bracketed(outages.iter().map(outage)));
}

fn capacity(out: &mut Out, rate_key: &str, trace_key: &str, capacity: &Capacity) {
    match capacity {
        Capacity::Rate(rate) => out.text(rate_key, rate_text(*rate)),
        Capacity::Trace(trace) => out.text(trace_key, &trace.file),
    }
}

fn limit(limit: Limit) -> String {
    quoted(match limit {
        Limit::Unlimited => "unlimited".into(),
        Limit::Packets(n) => format!("{n} packets"),
        Limit::Bytes(bytes) => size_text(bytes),
    })
}

const fn marks(ecn: bool) -> &'static str {
    if ecn { ", ecn = true" } else { "" }
}

fn queue(queue: &Queue) -> String {
    let limit = limit(queue.limit);
    match queue.discipline {
        Discipline::DropTail => limit,
        Discipline::Red { min, max, probability, weight, ecn } => format!(
            "{{ discipline = \"red\", limit = {limit}, min = {}, max = {}, probability = {}, \
             weight = {}{} }}",
            number(min),
            number(max),
            number(probability),
            number(weight),
            marks(ecn)
        ),
        Discipline::CoDel { target, interval, ecn } => format!(
            "{{ discipline = \"codel\", limit = {limit}, target = {}, interval = {}{} }}",
            duration(target),
            duration(interval),
            marks(ecn)
        ),
    }
}

fn loss(loss: &Loss) -> String {
    match loss {
        Loss::None => number(0.0),
        Loss::Bernoulli { rate } => number(*rate),
        Loss::GilbertElliott { p, r, good, bad } => format!(
            "{{ model = \"gilbert-elliott\", p = {}, r = {}, good = {}, bad = {} }}",
            number(*p),
            number(*r),
            number(*good),
            number(*bad)
        ),
        Loss::Markov { transitions, loss } => format!(
            "{{ model = \"markov\", transitions = {}, loss = {} }}",
            bracketed(transitions.iter().map(|row| numbers(row))),
            numbers(loss)
        ),
        Loss::Round { rate } => format!("{{ model = \"round\", rate = {} }}", number(*rate)),
        Loss::Trace { losses } => format!(
            "{{ model = \"trace\", losses = {} }}",
            bracketed(losses.iter().map(u64::to_string))
        ),
    }
}

fn jitter(jitter: Jitter) -> String {
    let shape = match jitter.shape {
        JitterShape::Uniform { max } => {
            format!("distribution = \"uniform\", max = {}", duration(max))
        }
        JitterShape::Normal { mean, deviation } => format!(
            "distribution = \"normal\", mean = {}, deviation = {}",
            duration(mean),
            duration(deviation)
        ),
        JitterShape::Exponential { mean } => {
            format!("distribution = \"exponential\", mean = {}", duration(mean))
        }
    };
    format!("{{ {shape}, keep_order = {} }}", jitter.keep_order)
}

fn reorder(reorder: Reorder) -> String {
    let probability = number(reorder.probability);
    format!("{{ probability = {probability}, delay = {} }}", duration(reorder.delay))
}

/// Merges the steps of both directions; steps at the same time become one.
fn steps(up: &[Step], down: &[Step]) -> String {
    let mut times: Vec<_> = up.iter().chain(down).map(|step| step.at).collect();
    times.sort_unstable();
    times.dedup();
    bracketed(times.into_iter().map(|at| {
        let mut text = format!("{{ at = {}", time(at));
        for (side, suffix) in [(up, ""), (down, "_down")] {
            let Some(step) = side.iter().find(|step| step.at == at) else { continue };
            let mut add = |key: &str, value: Option<String>| {
                if let Some(value) = value {
                    write!(text, ", {key} = {value}").expect("a string takes everything");
                }
            };
            add(&format!("rate{suffix}"), step.rate.map(rate));
            let delay_key = if suffix.is_empty() { "delay_up" } else { "delay_down" };
            add(delay_key, step.delay.map(duration));
            add(&format!("loss{suffix}"), step.loss.map(number));
        }
        text + " }"
    }))
}

fn cross(out: &mut Out, c: &Cross, scenario: &Scenario) {
    out.section("[[cross]]");
    let kind = match c.kind {
        CrossKind::Cbr { .. } => "cbr",
        CrossKind::OnOff { .. } => "on-off",
        CrossKind::Poisson { .. } => "poisson",
        CrossKind::Greedy { .. } => "greedy",
    };
    out.text("kind", kind);
    let on = match c.on {
        Target::Path(at) => &scenario.paths[at].name,
        Target::Link(at) => &scenario.links[at].name,
    };
    out.text("on", on);
    out.text("direction", c.side);
    match c.kind {
        CrossKind::Cbr { rate } | CrossKind::Poisson { rate } => out.text("rate", rate_text(rate)),
        CrossKind::OnOff { rate, on_time, off_time } => {
            out.text("rate", rate_text(rate));
            out.text("on_time", duration_text(on_time));
            out.text("off_time", duration_text(off_time));
        }
        CrossKind::Greedy { rtt } => out.text("rtt", duration_text(rtt)),
    }
    out.text("packet", size_text(c.packet.into()));
    out.plain("flows", c.flows);
    out.text("start", time_text(c.start));
    out.opt_text("stop", c.stop.map(time_text));
}

fn time_text(at: Time) -> String {
    duration_text(at.since(Time::ZERO))
}
