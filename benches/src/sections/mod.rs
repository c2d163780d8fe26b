//! The sections, one file each.

mod many;
mod models;
mod ns2;
mod speed;
mod startup;
mod wifi;

use core::fmt;

use crate::clock::timed;
use crate::report::Done;
use crate::row::Findings;

/// A group of figures that are measured together.
pub struct Section {
    /// Name on the command line.
    pub name: &'static str,
    /// Title.
    pub title: &'static str,
    measure: fn() -> Result<Findings, String>,
}

impl fmt::Debug for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Section {
    /// Measures the section.
    pub fn run(&self) -> Done {
        let (result, took_s) = timed(self.measure);
        let (findings, error) = match result {
            Ok(findings) => (findings, None),
            Err(error) => (Findings::default(), Some(error)),
        };
        Done { name: self.name, title: self.title, took_s, findings, error }
    }
}

const fn section(
    name: &'static str,
    title: &'static str,
    measure: fn() -> Result<Findings, String>,
) -> Section {
    Section { name, title, measure }
}

/// All sections, in the order of the report.
pub const SECTIONS: [Section; 6] = [
    section("ns2", "round robin against ns-2", ns2::measure),
    section("speed", "delivered packets per CPU second, beside ns-2", speed::measure),
    section("many", "a thousand associations over one bottleneck", many::measure),
    section("models", "throughput models and the window optimiser", models::measure),
    section("wifi", "802.11 beside the standard's arithmetic and Bianchi's model", wifi::measure),
    section("startup", "from the command line to the result", startup::measure),
];
