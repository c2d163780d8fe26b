//! Builder of a table, column by column.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt64Array};
use arrow_schema::{ArrowError, Field, Metadata, Schema};

use crate::series::Values;

/// The columns added so far.
#[derive(Default)]
pub(crate) struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    pub(crate) fn add(&mut self, name: impl Into<String>, array: ArrayRef, nullable: bool) {
        self.fields.push(Field::new(name, array.data_type().clone(), nullable));
        self.arrays.push(array);
    }

    pub(crate) fn counts(
        &mut self,
        name: impl Into<String>,
        values: impl IntoIterator<Item = u64>,
    ) {
        self.add(name, Arc::new(UInt64Array::from_iter_values(values)), false);
    }

    pub(crate) fn floats(
        &mut self,
        name: impl Into<String>,
        values: impl IntoIterator<Item = f64>,
    ) {
        self.add(name, Arc::new(Float64Array::from_iter_values(values)), false);
    }

    /// Adds a column of numbers with nulls.
    pub(crate) fn floats_or_null(
        &mut self,
        name: impl Into<String>,
        values: impl IntoIterator<Item = Option<f64>>,
    ) {
        self.add(name, Arc::new(values.into_iter().collect::<Float64Array>()), true);
    }

    /// Adds a column of a series.
    pub(crate) fn values(&mut self, name: impl Into<String>, values: Values<'_>) {
        match values {
            Values::Numbers(values) => self.floats(name, values.iter().copied()),
            Values::NumbersOrNull(values) => self.floats_or_null(name, values.iter().copied()),
            Values::Counts(values) => self.counts(name, values.iter().copied()),
        }
    }

    /// Finishes the table.
    ///
    /// # Errors
    /// If the columns are not equally long.
    pub(crate) fn into_batch(self, metadata: Metadata) -> Result<RecordBatch, ArrowError> {
        let schema = Schema::new(self.fields).with_metadata(metadata);
        RecordBatch::try_new(Arc::new(schema), self.arrays)
    }
}
