//! Closed forms over columns of numbers. The loops run here; the Python half handles shapes.
//!
//! Every array comes as a contiguous buffer of 64-bit floats, and results go into buffers that the caller
//! allocated. Quantities of paths are rows of `paths` numbers each.

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use ropewalk_models::{self as models, BoundInput, PathNumbers, PathsError};

use crate::error;

/// The known quantities of the paths, one row for each case.
struct Rows {
    paths: usize,
    rate_bps: Vec<f64>,
    rtt_s: Vec<f64>,
    forward_delay_s: Option<Vec<f64>>,
    reverse_rate_bps: Option<Vec<f64>>,
}

/// The columns of paths as they come from Python: rate, round trip, and two optional ones, forward delay and
/// rate of the reverse direction.
type PathBuffers = (PyBuffer<f64>, PyBuffer<f64>, Option<PyBuffer<f64>>, Option<PyBuffer<f64>>);

impl Rows {
    fn read(py: Python<'_>, paths: usize, buffers: &PathBuffers) -> PyResult<Self> {
        let optional = |buffer: &Option<PyBuffer<f64>>| {
            buffer.as_ref().map(|buffer| buffer.to_vec(py)).transpose()
        };
        let rows = Self {
            paths,
            rate_bps: buffers.0.to_vec(py)?,
            rtt_s: buffers.1.to_vec(py)?,
            forward_delay_s: optional(&buffers.2)?,
            reverse_rate_bps: optional(&buffers.3)?,
        };
        let length = rows.rate_bps.len();
        let others =
            [Some(&rows.rtt_s), rows.forward_delay_s.as_ref(), rows.reverse_rate_bps.as_ref()];
        if paths == 0
            || !length.is_multiple_of(paths)
            || others.iter().flatten().any(|c| c.len() != length)
        {
            return Err(error::value("columns of paths differ in length"));
        }
        Ok(rows)
    }

    fn row(&self, row: usize) -> Result<Vec<PathNumbers>, PathsError> {
        let cells = row * self.paths..(row + 1) * self.paths;
        let path = |cell: usize| {
            let mut path = PathNumbers::new(self.rate_bps[cell], self.rtt_s[cell])?;
            if let Some(delays) = &self.forward_delay_s {
                path = path.with_forward_delay_s(delays[cell])?;
            }
            if let Some(rates) = &self.reverse_rate_bps {
                path = path.with_reverse_rate_bps(rates[cell])?;
            }
            Ok(path)
        };
        cells.map(path).collect()
    }

    fn len(&self) -> usize {
        self.rate_bps.len() / self.paths
    }
}

/// The answers to `rows` cases, or the error of the first bad one.
///
/// The message about a single case has no case number.
pub(crate) fn each<T, E: ToString>(
    rows: usize,
    answer: impl Fn(usize) -> Result<T, E>,
) -> Result<Vec<T>, String> {
    let place = |row| if rows == 1 { String::new() } else { format!(" (case {row} of {rows})") };
    let checked = |row| answer(row).map_err(|error: E| error.to_string() + &place(row));
    (0..rows).map(checked).collect()
}

/// Writes `answer` for each case into `out`, with the interpreter released meanwhile.
pub(crate) fn fill<E: ToString>(
    py: Python<'_>,
    out: &PyBuffer<f64>,
    answer: impl Fn(usize) -> Result<f64, E> + Send,
) -> PyResult<()> {
    let rows = out.item_count();
    let values = py.detach(|| each(rows, answer)).map_err(error::model)?;
    out.copy_from_slice(py, &values)
}

/// Checks that a column has a number for each case.
fn column(py: Python<'_>, buffer: &PyBuffer<f64>, rows: usize) -> PyResult<Vec<f64>> {
    let column = buffer.to_vec(py)?;
    if column.len() == rows {
        return Ok(column);
    }
    Err(error::value(format!("{} numbers for {rows} cases", column.len())))
}

/// Kuhn et al. 2014, Eq 2, for n paths.
#[pyfunction]
pub(crate) fn blocking_time_max_s(
    py: Python<'_>,
    paths: usize,
    buffers: PathBuffers,
    packet_bytes: PyBuffer<f64>,
    out: PyBuffer<f64>,
) -> PyResult<()> {
    let rows = Rows::read(py, paths, &buffers)?;
    column_length(&out, rows.len())?;
    let packets = column(py, &packet_bytes, rows.len())?;
    fill(py, &out, |row| models::blocking_time_max_s(&rows.row(row)?, packets[row]))
}

/// Kuhn et al. 2014, Eq 3.
#[pyfunction]
pub(crate) fn receive_buffer_min_bytes(
    py: Python<'_>,
    paths: usize,
    buffers: PathBuffers,
    out: PyBuffer<f64>,
) -> PyResult<()> {
    let rows = Rows::read(py, paths, &buffers)?;
    column_length(&out, rows.len())?;
    fill(py, &out, |row| models::receive_buffer_min_bytes(&rows.row(row)?))
}

fn column_length(out: &PyBuffer<f64>, rows: usize) -> PyResult<()> {
    if out.item_count() == rows {
        return Ok(());
    }
    Err(error::value(format!("room for {} of {rows} answers", out.item_count())))
}

/// The bound, its shares per path (windows and rates), and the bytes left over.
#[pyfunction]
pub(crate) fn flow_control_bound(
    py: Python<'_>,
    paths: usize,
    buffers: PathBuffers,
    sizes: (PyBuffer<f64>, PyBuffer<f64>, PyBuffer<f64>),
    whole_packets: bool,
    out: (PyBuffer<f64>, PyBuffer<f64>, PyBuffer<f64>, PyBuffer<f64>),
) -> PyResult<()> {
    let rows = Rows::read(py, paths, &buffers)?;
    let buffer_bytes = column(py, &sizes.0, rows.len())?;
    let packet_bytes = column(py, &sizes.1, rows.len())?;
    let sack_bytes = column(py, &sizes.2, rows.len())?;
    let answer = |row: usize| {
        let input = BoundInput {
            buffer_bytes: buffer_bytes[row],
            packet_bytes: packet_bytes[row],
            sack_bytes: sack_bytes[row],
            whole_packets,
        };
        models::flow_control_bound(&rows.row(row)?, &input)
    };
    let bounds = py.detach(|| each(rows.len(), answer)).map_err(error::model)?;
    let shares = || bounds.iter().flat_map(|bound| &bound.shares);
    let windows: Vec<f64> = shares().map(|share| share.window_bytes).collect();
    let rates: Vec<f64> = shares().map(|share| share.rate_bps).collect();
    let totals: Vec<f64> = bounds.iter().map(|bound| bound.bound_bps).collect();
    let spare: Vec<f64> = bounds.iter().map(|bound| bound.spare_bytes).collect();
    out.0.copy_from_slice(py, &totals)?;
    out.1.copy_from_slice(py, &windows)?;
    out.2.copy_from_slice(py, &rates)?;
    out.3.copy_from_slice(py, &spare)
}

/// Kuhn et al. 2014, Eq 2 as printed: slow rate and round trip, fast rate and round trip, packet.
#[pyfunction]
pub(crate) fn blocking_time_two_paths_s(
    py: Python<'_>,
    arguments: [PyBuffer<f64>; 5],
    out: PyBuffer<f64>,
) -> PyResult<()> {
    let [slow_bps, slow_s, fast_bps, fast_s, packets] = columns(py, &arguments, &out)?;
    fill(py, &out, |i| {
        models::blocking_time_two_paths_s(
            slow_bps[i],
            slow_s[i],
            fast_bps[i],
            fast_s[i],
            packets[i],
        )
    })
}

/// Kuhn et al., DAPS slides, 2013: rate and round trip of path 0, then of path 1.
#[pyfunction]
pub(crate) fn asymmetry(
    py: Python<'_>,
    arguments: [PyBuffer<f64>; 4],
    out: PyBuffer<f64>,
) -> PyResult<()> {
    let [rate_0, rtt_0, rate_1, rtt_1] = columns(py, &arguments, &out)?;
    fill(py, &out, |i| models::asymmetry(rate_0[i], rtt_0[i], rate_1[i], rtt_1[i]))
}

/// Columns with a number for each answer.
pub(crate) fn columns<const N: usize>(
    py: Python<'_>,
    arguments: &[PyBuffer<f64>; N],
    out: &PyBuffer<f64>,
) -> PyResult<[Vec<f64>; N]> {
    let mut columns = [const { Vec::new() }; N];
    for (into, argument) in columns.iter_mut().zip(arguments) {
        *into = column(py, argument, out.item_count())?;
    }
    Ok(columns)
}

/// Sarwar et al. 2013, Algorithm 1.
#[pyfunction]
pub(crate) fn receive_order(delays: Vec<u64>, period_ticks: u64) -> PyResult<Vec<usize>> {
    models::receive_order(&delays, period_ticks).map_err(error::model)
}

/// Sarwar et al. 2013, Eq 3 and 4: ticks of the period, whether it was cut, packets per path.
#[pyfunction]
pub(crate) fn packets_per_period(
    delays: Vec<u64>,
    capacities: Vec<u64>,
    cap_ticks: Option<u64>,
) -> PyResult<(u64, bool, Vec<u64>)> {
    let packets =
        models::packets_per_period(&delays, &capacities, cap_ticks).map_err(error::model)?;
    Ok((packets.period.ticks, packets.period.capped, packets.per_path))
}
