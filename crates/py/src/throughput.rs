//! Throughput of single paths by the models, over columns of numbers.

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use ropewalk_models::reference_formulas::{PftkForm, mathis_pps, pftk_pps};
use ropewalk_models::renewal::PeriodLosses;
use ropewalk_models::{self as models, LossModel, LossyPath, OutOfRange};

use crate::error;
use crate::models::{columns, each, fill};

/// Rate in bit/s, round trip in s, loss, longest timeout in s, bytes of a packet, window in packets.
type Columns = [Vec<f64>; 6];

/// A path with the window of one row of the columns.
struct Case {
    path: LossyPath,
    window: u32,
    packet_bits: f64,
}

impl Case {
    fn read(columns: &Columns, row: usize) -> Result<Self, OutOfRange> {
        let [rate_bps, rtt_s, loss, rto_max_s, packet_bytes, windows] =
            columns.each_ref().map(|column| column[row]);
        let path = LossyPath::from_bits(rate_bps, rtt_s, loss, rto_max_s, packet_bytes)?;
        Ok(Self { path, window: window(windows)?, packet_bits: 8.0 * packet_bytes })
    }
}

/// Converts a window from a column of floats: Python passes arrays of one type.
fn window(packets: f64) -> Result<u32, OutOfRange> {
    if packets >= 1.0 && packets <= f64::from(u32::MAX) && packets.fract() == 0.0 {
        return Ok(packets as u32);
    }
    let valid = "a whole number of packets, 1 or more";
    Err(OutOfRange { name: "window_packets", value: packets, valid })
}

fn loss_model(name: &str) -> PyResult<LossModel> {
    name.parse().map_err(error::model)
}

/// Writes answers of several figures into one buffer per figure.
pub(crate) fn scatter<const N: usize>(
    py: Python<'_>,
    answers: &[[f64; N]],
    out: &[PyBuffer<f64>; N],
) -> PyResult<()> {
    for (figure, out) in out.iter().enumerate() {
        let column: Vec<f64> = answers.iter().map(|answer| answer[figure]).collect();
        out.copy_from_slice(py, &column)?;
    }
    Ok(())
}

/// Wallace and Shami 2014, Section 4.3: throughput and rate of sending in bit/s, mean window in
/// packets, timeouts and fast recoveries per second, share of the time spent waiting for a timer.
#[pyfunction]
pub(crate) fn markov(
    py: Python<'_>,
    arguments: [PyBuffer<f64>; 6],
    loss: &str,
    out: [PyBuffer<f64>; 6],
) -> PyResult<()> {
    let model = loss_model(loss)?;
    let columns: Columns = columns(py, &arguments, &out[0])?;
    let rows = out[0].item_count();
    let answers = py.detach(|| {
        let cases = each(rows, |row| Case::read(&columns, row))?;
        // Neighbours that differ only in their window are solved together.
        let runs = cases.chunk_by(|a, b| a.path == b.path && a.packet_bits == b.packet_bits);
        let answers: Result<Vec<_>, String> =
            runs.map(|run| one_path(run, model).map_err(|error| error.to_string())).collect();
        answers.map(|answers| answers.concat())
    });
    scatter(py, &answers.map_err(error::model)?, &out)
}

/// The figures of cases with one path and any windows.
fn one_path(cases: &[Case], model: LossModel) -> Result<Vec<[f64; 6]>, OutOfRange> {
    let Some(Case { path, packet_bits, .. }) = cases.first() else { return Ok(Vec::new()) };
    let windows: Vec<u32> = cases.iter().map(|case| case.window).collect();
    let found = models::markov::solve_each(path, &windows, model)?;
    let figures = found.iter().map(|found| {
        [
            found.throughput_pps * packet_bits,
            found.sent_pps * packet_bits,
            found.window_mean_packets,
            found.timeouts_per_s,
            found.recoveries_per_s,
            found.timer_share,
        ]
    });
    Ok(figures.collect())
}

/// The throughput of one path with all window limits from 1 on, as many as `out` has room for; bit/s.
#[pyfunction]
pub(crate) fn markov_table(
    py: Python<'_>,
    path: [f64; 5],
    loss: &str,
    out: PyBuffer<f64>,
) -> PyResult<()> {
    let model = loss_model(loss)?;
    let [rate_bps, rtt_s, loss, rto_max_s, packet_bytes] = path;
    let windows = window(out.item_count() as f64).map_err(error::model)?;
    let table = py.detach(|| {
        let path = LossyPath::from_bits(rate_bps, rtt_s, loss, rto_max_s, packet_bytes)?;
        models::markov::table(&path, windows, model)
    });
    let table = table.map_err(error::model)?;
    let bits: Vec<f64> = table.iter().map(|pps| pps * 8.0 * packet_bytes).collect();
    out.copy_from_slice(py, &bits)
}

/// Wallace and Shami 2014, Section 4.4: throughput in bit/s, window in packets, rounds, probability of a timeout.
#[pyfunction]
pub(crate) fn renewal(
    py: Python<'_>,
    arguments: [PyBuffer<f64>; 6],
    first_loss: bool,
    out: [PyBuffer<f64>; 4],
) -> PyResult<()> {
    let losses = if first_loss { PeriodLosses::FirstLoss } else { PeriodLosses::HalfWindow };
    let columns: Columns = columns(py, &arguments, &out[0])?;
    let answer = |row: usize| {
        let Case { path, window, packet_bits } = Case::read(&columns, row)?;
        let found = models::renewal::solve(&path, window, losses)?;
        let bps = found.throughput_pps * packet_bits;
        Ok::<_, OutOfRange>([bps, found.window_packets, found.rounds, found.timeout_probability])
    };
    let rows = out[0].item_count();
    let answers = py.detach(|| each(rows, answer)).map_err(error::model)?;
    scatter(py, &answers, &out)
}

/// Padhye et al. 2000, bit/s.
#[pyfunction]
pub(crate) fn pftk(
    py: Python<'_>,
    arguments: [PyBuffer<f64>; 6],
    packets_per_ack: f64,
    short: bool,
    out: PyBuffer<f64>,
) -> PyResult<()> {
    let form = if short { PftkForm::Short } else { PftkForm::Full };
    let columns: Columns = columns(py, &arguments, &out)?;
    fill(py, &out, |row| {
        let Case { path, window, packet_bits } = Case::read(&columns, row)?;
        let pps = pftk_pps(&path, window, packets_per_ack, form)?;
        Ok::<_, OutOfRange>(pps * packet_bits)
    })
}

/// Mathis et al. 1997, bit/s.
#[pyfunction]
pub(crate) fn mathis(
    py: Python<'_>,
    arguments: [PyBuffer<f64>; 6],
    packets_per_ack: f64,
    out: PyBuffer<f64>,
) -> PyResult<()> {
    let columns: Columns = columns(py, &arguments, &out)?;
    fill(py, &out, |row| {
        let Case { path, window, packet_bits } = Case::read(&columns, row)?;
        Ok::<_, OutOfRange>(mathis_pps(&path, window, packets_per_ack)? * packet_bits)
    })
}

/// A window per round trip, at most the rate: rate in bit/s, round trip in s, bytes of a packet, window
/// in packets; bit/s.
#[pyfunction]
pub(crate) fn loss_free(
    py: Python<'_>,
    arguments: [PyBuffer<f64>; 4],
    out: PyBuffer<f64>,
) -> PyResult<()> {
    let [rate_bps, rtt_s, packet_bytes, windows] = columns(py, &arguments, &out)?;
    fill(py, &out, |row| {
        // A negligible loss: with it the numbers form a path, whose constructor checks them.
        let (rate, bytes) = (rate_bps[row], packet_bytes[row]);
        let path = LossyPath::from_bits(rate, rtt_s[row], f64::EPSILON, f64::MAX, bytes)?;
        Ok::<_, OutOfRange>(path.loss_free_pps(window(windows[row])?) * 8.0 * bytes)
    })
}
