//! Messages that arrived.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use ropewalk_runtime::endpoint::{Part, Received};

/// A message that arrived: its bytes, its stream, and its payload protocol identifier.
#[pyclass(frozen, module = "ropewalk._ropewalk")]
pub(crate) struct Message {
    /// Its bytes.
    #[pyo3(get)]
    data: Py<PyBytes>,
    /// Its stream.
    #[pyo3(get)]
    stream: u16,
    /// Its payload protocol identifier, which the sender chose.
    #[pyo3(get)]
    ppid: u32,
    /// Its stream sequence number, as the sender set it; with interleaving, the lower half of its message identifier.
    #[pyo3(get)]
    ssn: u16,
    /// The transmission sequence number of one of its DATA chunks.
    #[pyo3(get)]
    tsn: u32,
    /// Whether it was sent unordered.
    #[pyo3(get)]
    unordered: bool,
    part: Part,
}

impl Message {
    pub fn new(py: Python<'_>, received: &Received) -> Self {
        let Received { stream, ppid, bytes, part, unordered, ssn, tsn, .. } = received;
        Self {
            data: PyBytes::new(py, bytes).unbind(),
            stream: *stream,
            ppid: *ppid,
            ssn: *ssn,
            tsn: *tsn,
            unordered: *unordered,
            part: *part,
        }
    }
}

#[pymethods]
impl Message {
    /// "whole", unless it is longer than the receive buffer: then "first", "middle" or "last".
    #[getter]
    const fn part(&self) -> &'static str {
        match self.part {
            Part::Whole => "whole",
            Part::First => "first",
            Part::Middle => "middle",
            Part::Last => "last",
        }
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (length, stream, ppid) = (self.data.as_bytes(py).len(), self.stream, self.ppid);
        format!("<Message of {length} bytes, stream {stream}, ppid {ppid}, {}>", self.part())
    }
}

/// The bytes of a bytes-like object: bytes, bytearray, memoryview, a NumPy array of bytes.
///
/// # Errors
/// The object has another type.
pub(super) fn bytes_of(data: &Bound<'_, PyAny>) -> PyResult<bytes::Bytes> {
    if let Ok(plain) = data.cast::<PyBytes>() {
        return Ok(bytes::Bytes::copy_from_slice(plain.as_bytes()));
    }
    let Ok(buffer) = PyBuffer::<u8>::get(data) else {
        let kind = data.get_type().name()?;
        let hint = if kind == "str" { "; text.encode() gives bytes" } else { "" };
        let text =
            format!("a message is bytes, bytearray or a view of bytes, and this is {kind}{hint}");
        return Err(PyTypeError::new_err(text));
    };
    Ok(buffer.to_vec(data.py())?.into())
}
