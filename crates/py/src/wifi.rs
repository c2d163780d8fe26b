//! Saturation of 802.11 by the models, over columns of numbers.

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use ropewalk_models::OutOfRange;
use ropewalk_models::bianchi::bianchi as saturation;
use ropewalk_models::wifi::{Exchange, Standard};

use crate::error;
use crate::models::{columns, each};
use crate::throughput::scatter;

/// A number of stations from a column of floats.
fn stations(value: f64) -> Result<u32, OutOfRange> {
    if value >= 1.0 && value <= f64::from(u32::MAX) && value.fract() == 0.0 {
        return Ok(value as u32);
    }
    Err(OutOfRange { name: "stations", value, valid: "a whole number, 1 or more" })
}

/// Bianchi 2000, Section IV, for stations, rate in bit/s and bytes of a packet: total throughput in bit/s,
/// probability that a station sends in a slot, probability that a transmission collides, share of frames given
/// up.
#[pyfunction]
pub(crate) fn bianchi(
    py: Python<'_>,
    arguments: [PyBuffer<f64>; 3],
    standard: &str,
    attempts: Option<u32>,
    out: [PyBuffer<f64>; 4],
) -> PyResult<()> {
    let standard: Standard = standard.parse().map_err(error::model)?;
    let [counts, rate_bps, packet_bytes] = columns(py, &arguments, &out[0])?;
    let rows = out[0].item_count();
    let answer = |row: usize| {
        let exchange = Exchange::new(standard, rate_bps[row], packet_bytes[row])?;
        let found = saturation(stations(counts[row])?, &exchange, attempts)?;
        let figures = [found.throughput_bps, found.transmission, found.collision, found.given_up];
        Ok::<_, OutOfRange>(figures)
    };
    let answers = py.detach(|| each(rows, answer)).map_err(error::model)?;
    scatter(py, &answers, &out)
}
