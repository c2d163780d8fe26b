//! Window limits from tables of throughputs.
//!
//! Tables may be in any unit of throughput; results are in the same unit.

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use ropewalk_models::optimise::{self, Allocation, Members, Method, OptimiseError, PathTable};

use crate::error;

/// Limits in packets, their throughput, and how they were found.
type Found = (Vec<u32>, f64, &'static str);

fn found(allocation: Allocation) -> Found {
    let method = match allocation.method {
        Method::Greedy => "greedy",
        Method::Dynamic => "dynamic",
    };
    (allocation.limits_packets, allocation.throughput_pps, method)
}

const fn members(may_rest: bool) -> Members {
    if may_rest { Members::Paying } else { Members::All }
}

/// Reads the tables, each entry for one packet more, and runs `solve` with the interpreter released.
fn with_tables<T: Send>(
    py: Python<'_>,
    tables: &[PyBuffer<f64>],
    solve: impl FnOnce(&[PathTable]) -> Result<T, OptimiseError> + Send,
) -> PyResult<T> {
    let columns: Vec<Vec<f64>> =
        tables.iter().map(|table| table.to_vec(py)).collect::<PyResult<_>>()?;
    let solved = py.detach(|| {
        let tables = columns.iter().map(|column| Ok(PathTable::new(column)?));
        solve(&tables.collect::<Result<Vec<_>, OptimiseError>>()?)
    });
    solved.map_err(error::model)
}

/// Wallace and Shami 2014, Eq 56 to 60.
#[pyfunction]
pub(crate) fn allocate(
    py: Python<'_>,
    tables: Vec<PyBuffer<f64>>,
    packets: u32,
    may_rest: bool,
) -> PyResult<Found> {
    let solve =
        |tables: &[PathTable]| optimise::allocate(tables, packets, members(may_rest)).map(found);
    with_tables(py, &tables, solve)
}

/// Wallace and Shami 2014, Eq 61.
#[pyfunction]
pub(crate) fn heuristic(
    py: Python<'_>,
    tables: Vec<PyBuffer<f64>>,
    packets: u32,
    multiple: u32,
) -> PyResult<Found> {
    let solve = |tables: &[PathTable]| optimise::heuristic(tables, packets, multiple).map(found);
    with_tables(py, &tables, solve)
}

/// Packets of the smallest buffer, and its best use.
#[pyfunction]
pub(crate) fn least_buffer(
    py: Python<'_>,
    tables: Vec<PyBuffer<f64>>,
    target: f64,
    may_rest: bool,
) -> PyResult<(u32, Found)> {
    let solve = |tables: &[PathTable]| {
        let least = optimise::least_buffer(tables, target, members(may_rest))?;
        Ok((least.packets, found(least.allocation)))
    };
    with_tables(py, &tables, solve)
}
