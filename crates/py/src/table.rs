//! A table of columns, exported by the Arrow PyCapsule interface without a copy.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::error;

/// Columns of equal length.
#[pyclass(frozen, module = "ropewalk._ropewalk")]
pub(crate) struct Table {
    batch: RecordBatch,
}

impl Table {
    pub(crate) fn new(batch: RecordBatch) -> Self {
        Self { batch }
    }
}

/// A batch in Arrow's stream format.
pub(crate) fn to_ipc(batch: &RecordBatch) -> PyResult<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut writer =
        StreamWriter::try_new(&mut bytes, batch.schema().as_ref()).map_err(arrow_error)?;
    writer.write(batch).and_then(|()| writer.finish()).map_err(arrow_error)?;
    drop(writer);
    Ok(bytes)
}

/// The batch of [`to_ipc`].
pub(crate) fn from_ipc(bytes: &[u8]) -> PyResult<RecordBatch> {
    let mut reader = StreamReader::try_new(bytes, None).map_err(arrow_error)?;
    reader.next().ok_or_else(|| error::value("no table is stored here"))?.map_err(arrow_error)
}

/// A column that comes from Python.
#[derive(FromPyObject)]
enum Column {
    Text(Vec<String>),
    Numbers(Vec<Option<f64>>),
}

impl From<Column> for ArrayRef {
    fn from(column: Column) -> Self {
        match column {
            Column::Text(values) => Arc::new(StringArray::from(values)),
            Column::Numbers(values) => Arc::new(Float64Array::from(values)),
        }
    }
}

#[pymethods]
impl Table {
    /// The form for [`Table::restore`].
    fn stored(&self) -> PyResult<Vec<u8>> {
        to_ipc(&self.batch)
    }

    /// The same table from its stored form.
    #[staticmethod]
    fn restore(stored: Vec<u8>) -> PyResult<Self> {
        from_ipc(&stored).map(Self::new)
    }

    /// A table of text and numbers.
    #[staticmethod]
    fn from_columns(columns: Vec<(String, Column)>) -> PyResult<Self> {
        let (names, arrays): (Vec<_>, Vec<ArrayRef>) =
            columns.into_iter().map(|(name, column)| (name, column.into())).unzip();
        let field = |(name, array): (String, &ArrayRef)| {
            Field::new(name, array.data_type().clone(), array.is_nullable())
        };
        let fields: Vec<_> = names.into_iter().zip(&arrays).map(field).collect();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
        Ok(Self::new(batch.map_err(arrow_error)?))
    }

    /// The Arrow C stream of its one batch. The columns are shared, not copied. The protocol permits to ignore
    /// the schema that a consumer requests.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = std::iter::once(Ok(self.batch.clone()));
        let reader = RecordBatchIterator::new(batches, self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The schema alone.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema().as_ref());
        PyCapsule::new_with_value(py, schema.map_err(arrow_error)?, c"arrow_schema")
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// Names with their types: `float64`, `uint64`, `bool` or `string`.
    fn types(&self) -> PyResult<Vec<(String, &'static str)>> {
        let schema = self.batch.schema();
        let columns = schema.fields().iter().zip(self.batch.columns());
        columns.map(|(field, column)| Ok((field.name().clone(), type_name(column)?))).collect()
    }

    /// The metadata of the schema.
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let schema = self.batch.schema();
        let mut pairs: Vec<_> = schema.metadata().iter().collect();
        pairs.sort_unstable();
        let dict = PyDict::new(py);
        for (key, value) in pairs {
            dict.set_item(key, value)?;
        }
        Ok(dict)
    }

    /// Writes a column of floats or counts into `out`; missing values become NaN.
    fn fill_floats(&self, py: Python<'_>, name: &str, out: PyBuffer<f64>) -> PyResult<()> {
        let column = self.column(name)?;
        let known = |value: Option<f64>| value.unwrap_or(f64::NAN);
        let values: Vec<f64> = match column.as_primitive_opt::<UInt64Type>() {
            Some(counts) => counts.iter().map(|count| known(count.map(|n| n as f64))).collect(),
            None => {
                let floats = column.as_primitive_opt::<Float64Type>();
                floats.ok_or_else(|| wrong_type(name, "floats"))?.iter().map(known).collect()
            }
        };
        out.copy_from_slice(py, &values)
    }

    /// Writes a column of counts into `out`.
    fn fill_counts(&self, py: Python<'_>, name: &str, out: PyBuffer<u64>) -> PyResult<()> {
        let column = self.column(name)?.as_primitive_opt::<UInt64Type>();
        let column = column.ok_or_else(|| wrong_type(name, "counts"))?;
        if column.null_count() > 0 {
            return Err(wrong_type(name, "counts without gaps"));
        }
        out.copy_from_slice(py, column.values())
    }

    /// A column of booleans.
    fn flags(&self, name: &str) -> PyResult<Vec<Option<bool>>> {
        let column = self.column(name)?.as_boolean_opt();
        let column = column.ok_or_else(|| wrong_type(name, "flags"))?;
        Ok(column.iter().collect())
    }

    /// A column of text.
    fn texts(&self, name: &str) -> PyResult<Vec<Option<String>>> {
        let column = self.column(name)?.as_string_opt::<i32>();
        let column = column.ok_or_else(|| wrong_type(name, "text"))?;
        Ok(column.iter().map(|value| value.map(str::to_owned)).collect())
    }
}

impl Table {
    fn column(&self, name: &str) -> PyResult<&ArrayRef> {
        self.batch.column_by_name(name).ok_or_else(|| {
            let schema = self.batch.schema();
            let names: Vec<_> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            PyKeyError::new_err(format!("no column `{name}`; there are: {}", names.join(", ")))
        })
    }
}

fn type_name(column: &ArrayRef) -> PyResult<&'static str> {
    match column.data_type() {
        DataType::Float64 => Ok("float64"),
        // NumPy's integers have no value for unknown entries.
        DataType::UInt64 if column.null_count() > 0 => Ok("float64"),
        DataType::UInt64 => Ok("uint64"),
        DataType::Boolean => Ok("bool"),
        DataType::Utf8 => Ok("string"),
        other => Err(PyTypeError::new_err(format!("a column of type {other} is not expected"))),
    }
}

fn wrong_type(name: &str, wanted: &str) -> PyErr {
    PyTypeError::new_err(format!("the column `{name}` does not hold {wanted}"))
}

fn arrow_error(error: ArrowError) -> PyErr {
    error::value(error)
}
