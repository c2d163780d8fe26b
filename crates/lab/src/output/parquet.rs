//! Tables as Parquet files. The columns of our tables have four types, and a few lines read and write each of them.
//! The library's conversion from and to Arrow handles all types, and would add 0.9 MB to the command.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Metadata, Schema};
use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType as Stored, DoubleType, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{ChunkReader, FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnDescriptor, Type, TypePtr};

type Result<T> = std::result::Result<T, ParquetError>;

/// Maximum number of rows per group.
const ROWS_PER_GROUP: usize = 1 << 20;

/// A table as the bytes of a file, compressed with Snappy. The metadata of the schema become those of the file.
pub(super) fn write(schema: &Schema, batches: &[RecordBatch]) -> Result<Vec<u8>> {
    let fields = schema.fields().iter().map(|field| stored_field(field));
    let root = Type::group_type_builder("schema").with_fields(fields.collect::<Result<_>>()?);
    let metadata = schema.metadata().iter();
    let metadata = metadata.map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(metadata.collect()))
        .build();
    let mut bytes = Vec::new();
    let mut writer =
        SerializedFileWriter::new(&mut bytes, Arc::new(root.build()?), Arc::new(properties))?;
    for batch in batches {
        for first in (0..batch.num_rows()).step_by(ROWS_PER_GROUP) {
            let rows = batch.slice(first, ROWS_PER_GROUP.min(batch.num_rows() - first));
            let mut group = writer.next_row_group()?;
            for column in rows.columns() {
                let mut place = group.next_column()?.ok_or_else(|| wrong("too many columns"))?;
                write_column(&mut place, column)?;
                place.close()?;
            }
            group.close()?;
        }
    }
    writer.close()?;
    Ok(bytes)
}

/// How a column is stored.
fn stored_field(field: &Field) -> Result<TypePtr> {
    let (physical, converted, logical) = match field.data_type() {
        DataType::Float64 => (Physical::DOUBLE, ConvertedType::NONE, None),
        DataType::UInt64 => {
            let logical = LogicalType::integer(64, false);
            (Physical::INT64, ConvertedType::UINT_64, Some(logical))
        }
        DataType::Boolean => (Physical::BOOLEAN, ConvertedType::NONE, None),
        DataType::Utf8 => (Physical::BYTE_ARRAY, ConvertedType::UTF8, Some(LogicalType::String)),
        other => return Err(wrong(format!("`{}` has the type {other}", field.name()))),
    };
    let repetition = if field.is_nullable() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let field = Type::primitive_type_builder(field.name(), physical)
        .with_converted_type(converted)
        .with_logical_type(logical)
        .with_repetition(repetition);
    Ok(Arc::new(field.build()?))
}

fn write_column(place: &mut SerializedColumnWriter<'_>, column: &ArrayRef) -> Result<()> {
    let levels: Vec<i16> = (0..column.len()).map(|row| column.is_valid(row).into()).collect();
    match column.data_type() {
        DataType::Float64 => {
            let values = column.as_primitive::<Float64Type>().iter().flatten();
            write_values::<DoubleType>(place, values.collect(), &levels)
        }
        DataType::UInt64 => {
            let values = column.as_primitive::<UInt64Type>().iter().flatten();
            write_values::<Int64Type>(place, values.map(u64::cast_signed).collect(), &levels)
        }
        DataType::Boolean => {
            let values = column.as_boolean().iter().flatten();
            write_values::<BoolType>(place, values.collect(), &levels)
        }
        _ => {
            let values = column.as_string::<i32>().iter().flatten();
            write_values::<ByteArrayType>(place, values.map(ByteArray::from).collect(), &levels)
        }
    }
}

/// Writes the values that are not null. `levels` has 1 for each row with a value. The writer ignores it for columns
/// without nulls.
fn write_values<T: Stored>(
    place: &mut SerializedColumnWriter<'_>,
    values: Vec<T::T>,
    levels: &[i16],
) -> Result<()> {
    place.typed::<T>().write_batch(&values, Some(levels), None).map(|_| ())
}

/// A Parquet file that has been opened.
pub(crate) struct ParquetFile<R: ChunkReader> {
    reader: SerializedFileReader<R>,
}

impl<R: ChunkReader + 'static> ParquetFile<R> {
    /// Opens a file.
    ///
    /// # Errors
    /// If it is not a Parquet file.
    pub(crate) fn open(file: R) -> Result<Self> {
        Ok(Self { reader: SerializedFileReader::new(file)? })
    }

    /// The metadata of the table.
    pub(crate) fn metadata(&self) -> Metadata {
        let entries = self.reader.metadata().file_metadata().key_value_metadata();
        let entries = entries.into_iter().flatten();
        let known = entries.filter_map(|entry| Some((entry.key.clone(), entry.value.clone()?)));
        Metadata::from(known.collect::<std::collections::BTreeMap<_, _>>())
    }

    /// Reads the table.
    ///
    /// # Errors
    /// If the file is damaged, or if a column has a type that our tables do not have.
    pub(crate) fn read(&self) -> Result<RecordBatch> {
        let description = self.reader.metadata().file_metadata().schema_descr();
        let mut groups = Vec::new();
        for group in 0..self.reader.num_row_groups() {
            groups.push(self.reader.get_row_group(group)?);
        }
        let mut fields = Vec::new();
        let mut columns = Vec::new();
        for (place, column) in description.columns().iter().enumerate() {
            let array = read_column(column, &groups, place)?;
            let nullable = column.max_def_level() > 0;
            fields.push(Field::new(column.name(), array.data_type().clone(), nullable));
            columns.push(array);
        }
        let schema = Schema::new(fields).with_metadata(self.metadata());
        RecordBatch::try_new(Arc::new(schema), columns).map_err(|error| wrong(error.to_string()))
    }
}

type Groups<'a> = [Box<dyn RowGroupReader + 'a>];

fn read_column(column: &ColumnDescriptor, groups: &Groups<'_>, place: usize) -> Result<ArrayRef> {
    if column.max_rep_level() > 0 || column.max_def_level() > 1 {
        return Err(wrong(format!("`{}` is nested", column.path())));
    }
    Ok(match (column.physical_type(), column.converted_type()) {
        (Physical::DOUBLE, _) => Arc::new(
            read_values::<DoubleType>(groups, place)?.into_iter().collect::<Float64Array>(),
        ),
        (Physical::INT64, ConvertedType::UINT_64) => {
            let values = read_values::<Int64Type>(groups, place)?.into_iter();
            Arc::new(values.map(|one| one.map(i64::cast_unsigned)).collect::<UInt64Array>())
        }
        (Physical::BOOLEAN, _) => {
            Arc::new(read_values::<BoolType>(groups, place)?.into_iter().collect::<BooleanArray>())
        }
        (Physical::BYTE_ARRAY, ConvertedType::UTF8) => {
            let values = read_values::<ByteArrayType>(groups, place)?;
            let texts = values.iter().map(|one| one.as_ref().map(ByteArray::as_utf8).transpose());
            Arc::new(texts.collect::<Result<StringArray>>()?)
        }
        (physical, converted) => {
            let name = column.path();
            return Err(wrong(format!("`{name}` has the type {physical} ({converted})")));
        }
    })
}

/// Values of a column in all row groups. `None` where the column is null.
fn read_values<T: Stored>(groups: &Groups<'_>, place: usize) -> Result<Vec<Option<T::T>>> {
    let mut all = Vec::new();
    for group in groups {
        let mut reader: ColumnReaderImpl<T> =
            get_typed_column_reader(group.get_column_reader(place)?);
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        while reader.read_records(ROWS_PER_GROUP, Some(&mut levels), None, &mut values)?.0 > 0 {}
        if levels.is_empty() {
            all.extend(values.into_iter().map(Some));
            continue;
        }
        let mut values = values.into_iter();
        all.extend(levels.into_iter().map(|level| if level > 0 { values.next() } else { None }));
    }
    Ok(all)
}

fn wrong(what: impl Into<String>) -> ParquetError {
    ParquetError::General(what.into())
}
