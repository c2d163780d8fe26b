//! The output of `advise`.

use ropewalk_lab::advise::{AUDIBLE, Advice, Case, Choice, Goal, Link, Quantity};
use ropewalk_lab::compare::Estimate;
use ropewalk_lab::result::Unit;

use crate::console::{layout, width, wrapped};
use crate::format::Captioned;
use crate::printer::{percent, rate, size};
use crate::table::{Cell, Table};

/// Minimum loss against a rival for a case to be listed.
const NOTABLE: f64 = 0.02;

/// The complete output.
pub fn text(title: &str, advice: &Advice) -> String {
    let goal = match advice.goal {
        Goal::Throughput => "the highest goodput",
        Goal::Latency => "the highest ratio of goodput to the 99th percentile of delay",
        Goal::Calls if advice.advice.mos.is_some() => {
            "the best mean opinion score of the worst call, then the highest goodput of the other flows"
        }
        Goal::Calls => "the lowest 99th percentile of delay of a call",
    };
    let heading = format!("{title}: {goal}\n");
    let mut lines = vec![("use", named(&advice.advice))];
    lines.extend(advice.rival.as_ref().map(|rival| ("rival", named(rival))));
    lines.push(("one link", named(&advice.best_single)));
    lines.push(("as it is", named(&advice.current)));
    lines.push(("why", advice.reason.clone()));
    lines.push(("how sure", sure(advice)));
    let lines = lines.iter().map(|(name, text)| wrapped(&format!("{name:<10}"), text, width()));
    let parts = [
        heading,
        lines.collect(),
        choices(advice),
        links(&advice.paths).text(layout()),
        notes(advice),
    ];
    parts.join("\n")
}

/// A choice as a phrase.
fn named(choice: &Choice) -> String {
    let links = choice.paths.join(" + ");
    let buffer = size(choice.receive_buffer_bytes as f64);
    let scheduler = match choice.paths[..] {
        [_] => String::new(),
        _ => format!(", scheduler {}", choice.scheduler),
    };
    let tunnel: String = choice.tunnel.iter().map(|change| format!(", {change}")).collect();
    let congestion = &choice.congestion;
    format!("{links}{scheduler}, congestion control {congestion}, receive buffer {buffer}{tunnel}")
}

/// The figures of the advice and of the other choices.
pub fn choices_table(advice: &Advice) -> Table {
    let rated = advice.advice.mos.is_some();
    let mut table = Table::new(&["choice"]);
    if rated {
        table.column("MOS", "mos");
    }
    for heading in ["goodput", "delay p99", "of the advice"] {
        table.column(heading, "");
    }
    let mut row = |name: &str, choice: &Choice| {
        let score = rated.then(|| Cell::mean(choice.mos, Unit::Score));
        let figures = [
            Cell::mean(Some(choice.goodput_bps), Unit::BitsPerSecond),
            Cell::mean(choice.app_delay_p99_s, Unit::Seconds),
            Cell::mean(Some(choice.ratio), Unit::Ratio),
        ];
        table.row([Cell::from(name)].into_iter().chain(score).chain(figures).collect());
    };
    row("use", &advice.advice);
    if let Some(rival) = &advice.rival {
        row("rival", rival);
    }
    row("one link", &advice.best_single);
    row("as it is", &advice.current);
    table
}

fn choices(advice: &Advice) -> String {
    let bound = advice.flow_control_bound_bps.map_or_else(String::new, |bound| {
        format!("flow-control bound of the advice: {} with headers\n", rate(bound))
    });
    choices_table(advice).text(layout()) + &bound
}

/// The contribution of each link.
pub fn links(links: &[Link]) -> Table {
    let mut table = Table::new(&["link", "verdict", "alone", "adds", "gain"]);
    for link in links {
        table.row(vec![
            Cell::from(link.name.clone()),
            Cell::from(match (link.used, link.carries()) {
                (false, _) => "leave it alone",
                (true, false) => "reserve, carries nothing",
                (true, true) => "pays off",
            }),
            Cell::mean(Some(link.alone_bps), Unit::BitsPerSecond),
            Cell::mean(link.adds_bps, Unit::BitsPerSecond),
            link.gain.map_or(Cell::Unknown, |of| Cell::from(gain(of))),
        ]);
    }
    table
}

/// All tables with their captions.
pub fn tables(advice: &Advice) -> Vec<Captioned> {
    let choices = Captioned::new("Choices", choices_table(advice));
    vec![choices, Captioned::new("Links", links(&advice.paths))]
}

/// The relative gain in the figure of the goal.
fn gain(of: Estimate) -> String {
    let half = of.half_width.map_or_else(String::new, |half| format!(" ± {}", percent(half)));
    format!("{:+.1} %{half}", (of.mean - 1.0) * 100.0)
}

/// Text about the sensitivity to differences between the links and the scenario.
fn sure(advice: &Advice) -> String {
    let cases = &advice.sensitivity;
    if cases.is_empty() {
        return "no link has a rate or an RTT that could be varied".to_owned();
    }
    let mut notable: Vec<&Case> = cases.iter().filter(|case| case.loss > NOTABLE).collect();
    notable.sort_by(|a, b| b.loss.total_cmp(&a.loss));
    let kept = cases.len() - notable.len();
    let mut text = format!(
        "if a rate or an RTT is 20 % off, the advice stays within 2 % of the best in {kept} of {} cases",
        cases.len()
    );
    if let Some((case, better)) =
        notable.first().and_then(|case| Some((case, case.better.as_ref()?)))
    {
        text += &format!(
            "; with {} of {} at {}, it has {} of what {better} has",
            quantity(case.quantity),
            case.path,
            percent(case.factor),
            percent(1.0 - case.loss)
        );
    }
    let least = cases.iter().min_by(|a, b| a.goodput_ratio.total_cmp(&b.goodput_ratio));
    if let Some(case) = least.filter(|case| case.goodput_ratio < 1.0) {
        text += &format!(
            ". Goodput falls most with {} of {} at {}: to {}",
            quantity(case.quantity),
            case.path,
            percent(case.factor),
            percent(case.goodput_ratio)
        );
    }
    text
}

const fn quantity(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Rate => "the rate",
        Quantity::Rtt => "the RTT",
    }
}

fn notes(advice: &Advice) -> String {
    let text = format!(
        "{} simulations; figures are means of {} runs over {} with seeds that the search did not use, ± half \
         of a 95 % confidence interval; `rival` is the best other choice, `one link` the best link alone; `of the advice` compares the figure \
         of the goal, and `gain` is that figure with the link over that without it, seed by seed",
        advice.simulations,
        advice.seeds,
        crate::printer::time(advice.measured_s)
    );
    let rated = match advice.advice.mos {
        Some(_) => format!(
            "; MOS is the mean opinion score of the worst call, differences below {AUDIBLE} count as none, and the figure of the \
             goal is then the goodput of the other flows"
        ),
        None => String::new(),
    };
    wrapped("note: ", &(text + &rated), width())
}
