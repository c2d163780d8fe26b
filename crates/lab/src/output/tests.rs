use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, BooleanArray, RecordBatch, StringArray, UInt64Array};
use arrow_ipc::reader::FileReader;
use arrow_schema::Metadata;
use proptest::prelude::*;

use super::*;
use crate::series::PathSeries;

fn series() -> Series {
    Series {
        time_s: vec![0.1, 0.2],
        goodput_bps: vec![0.0, 1.25e6],
        delivered_bytes: vec![0, u64::MAX],
        receive_buffer_bytes: vec![3, 4],
        receive_buffer_peak_bytes: vec![11, 12],
        receive_window_bytes: vec![5, 6],
        paths: vec![PathSeries {
            name: "wi,fi".to_owned(),
            throughput_bps: vec![0.1 + 0.2, 2.0],
            cwnd_bytes: vec![7, 8],
            in_flight_bytes: vec![9, 10],
            srtt_s: vec![None, Some(0.02)],
            lost_packets: vec![0, 13],
        }],
    }
}

fn origin() -> SeriesOrigin {
    SeriesOrigin {
        scenario_toml: "[[path]]\n".to_owned(),
        seed: "18446744073709551615".to_owned(),
        version: "1.2.3".to_owned(),
    }
}

fn encoded(format: SeriesFormat) -> Vec<u8> {
    let batch = series_to_record_batch(&series(), &origin()).expect("equal columns");
    encode(format, &batch.schema(), &[batch]).expect("a file")
}

fn check(batch: &RecordBatch) {
    let schema = batch.schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let own = [
        "time_s",
        "goodput_bps",
        "delivered_bytes",
        "receive_buffer_bytes",
        "receive_buffer_peak_bytes",
        "receive_window_bytes",
    ];
    let of_path = [
        "wi,fi.throughput_bps",
        "wi,fi.cwnd_bytes",
        "wi,fi.in_flight_bytes",
        "wi,fi.srtt_s",
        "wi,fi.lost_packets",
    ];
    assert_eq!(names, [&own[..], &of_path[..]].concat());
    let srtt = batch.column(9).as_primitive::<Float64Type>();
    assert!(srtt.is_null(0) && srtt.value(1) == 0.02);
    assert_eq!(batch.column(2).as_primitive::<UInt64Type>().value(1), u64::MAX);
    let kept = |key: &str| schema.metadata().get(key).map(String::as_str);
    assert_eq!(kept("schema"), Some("ropewalk.series/1"));
    assert_eq!(kept("seed"), Some("18446744073709551615"));
    assert_eq!(kept("scenario"), Some("[[path]]\n"));
    assert_eq!(kept("version"), Some("1.2.3"));
}

#[test]
fn parquet_comes_back_with_values_and_metadata() {
    let bytes = bytes::Bytes::from(encoded(SeriesFormat::Parquet));
    check(&ParquetFile::open(bytes).expect("a parquet file").read().expect("a sound one"));
}

/// A column of each type and with nulls, of the rows in which the numbers are the seeds of all values.
fn of_all_types(rows: &[u64]) -> RecordBatch {
    let mut columns = Columns::default();
    let some = |row: &u64| (!row.is_multiple_of(3)).then_some(*row);
    let text = |row: u64| format!("{row} \u{e9}\"\n").repeat(row as usize % 3);
    columns.counts("a.count", rows.iter().copied());
    columns.floats("float", rows.iter().map(|row| f64::from_bits(*row)));
    columns.floats_or_null("float?", rows.iter().map(|row| some(row).map(f64::from_bits)));
    let counts = rows.iter().map(some).collect::<UInt64Array>();
    let flags = rows.iter().map(|row| some(row).map(|row| row % 2 == 0));
    let texts = rows.iter().map(|row| some(row).map(text)).collect::<StringArray>();
    columns.add("count?", Arc::new(counts), true);
    columns.add("flag?", Arc::new(flags.collect::<BooleanArray>()), true);
    columns.add("text?", Arc::new(texts), true);
    let all = rows.iter().map(|row| Some(text(*row))).collect::<StringArray>();
    columns.add("text", Arc::new(all), false);
    columns.into_batch(Metadata::from([("schema", "x"), ("text", "\n=\u{e9}")])).expect("a table")
}

proptest! {
    #[test]
    fn any_table_comes_back_from_parquet(
        tables in prop::collection::vec(prop::collection::vec(any::<u64>(), 0..40), 1..4),
    ) {
        let batches: Vec<_> = tables.iter().map(|rows| of_all_types(rows)).collect();
        let file = encode(SeriesFormat::Parquet, &batches[0].schema(), &batches).expect("a file");
        let read = ParquetFile::open(bytes::Bytes::from(file)).expect("one").read();
        let whole = of_all_types(&tables.concat());
        // NaNs are not equal to themselves.
        prop_assert_eq!(format!("{:?}", read.expect("sound")), format!("{:?}", whole));
    }
}

#[test]
fn a_damaged_parquet_file_is_an_error() {
    let sound = encoded(SeriesFormat::Parquet);
    for (at, place) in [4, 100, sound.len() / 2].into_iter().enumerate() {
        let mut damaged = sound.clone();
        damaged[place..place + 20].fill(0xff);
        let read = ParquetFile::open(bytes::Bytes::from(damaged)).and_then(|file| file.read());
        assert!(read.is_err(), "{at}");
    }
    let cut = bytes::Bytes::from(sound[..sound.len() - 1].to_vec());
    assert!(ParquetFile::open(cut).is_err());
}

#[test]
fn arrow_comes_back_with_values_and_metadata() {
    let bytes = std::io::Cursor::new(encoded(SeriesFormat::Arrow));
    let mut reader = FileReader::try_new(bytes, None).expect("an arrow file");
    check(&reader.next().expect("a batch").expect("a sound one"));
}

#[test]
fn csv_has_headings_empty_cells_for_nulls_and_exact_numbers() {
    let text = String::from_utf8(encoded(SeriesFormat::Csv)).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("time_s,goodput_bps,"), "{}", lines[0]);
    assert!(lines[0].contains(",\"wi,fi.srtt_s\""), "{}", lines[0]);
    let rows = [
        "0.1,0,0,3,11,5,0.30000000000000004,7,9,,0",
        "0.2,1250000,18446744073709551615,4,12,6,2,8,10,0.02,13",
    ];
    assert_eq!(lines[1..], rows);
}

#[test]
fn the_same_series_gives_the_same_bytes() {
    for format in [SeriesFormat::Parquet, SeriesFormat::Arrow, SeriesFormat::Csv] {
        assert_eq!(encoded(format), encoded(format), "{format:?}");
    }
}

#[test]
fn several_runs_stand_below_each_other_with_their_labels() {
    let one = series();
    let tables = batch::labelled(&[("daps", &one, origin()), ("wrr", &one, origin())]);
    let tables = tables.expect("the same paths");
    let csv = encode(SeriesFormat::Csv, &tables[0].schema(), &tables).expect("a file");
    let text = String::from_utf8(csv).expect("text");
    let labels: Vec<&str> = text.lines().map(|line| line.split(',').next().unwrap_or("")).collect();
    assert_eq!(labels, ["run", "daps", "daps", "wrr", "wrr"]);
    assert!(tables[0].schema().metadata().get("scenario:wrr").is_some());
}

#[test]
fn runs_over_other_paths_do_not_share_a_table() {
    let (one, mut other) = (series(), series());
    other.paths[0].name = "lte".to_owned();
    let error = batch::labelled(&[("a", &one, origin()), ("b", &other, origin())]);
    assert!(error.expect_err("other columns").to_string().contains("`b`"));
}

#[test]
fn the_ending_of_the_name_says_the_format_or_the_error_says_which_do() {
    for (name, format) in [
        ("a.parquet", SeriesFormat::Parquet),
        ("a.b.ARROW", SeriesFormat::Arrow),
        ("dir.csv/x.feather", SeriesFormat::Arrow),
        ("x.csv", SeriesFormat::Csv),
    ] {
        assert_eq!(SeriesFormat::from_path(Path::new(name)), Ok(format), "{name}");
    }
    for (name, ending) in [("x.xlsx", "xlsx"), ("parquet", ""), (".csv", "")] {
        let error = SeriesFormat::from_path(Path::new(name)).expect_err(name);
        assert_eq!(error.ending, ending);
        assert!(error.help().contains(".parquet, .arrow, .feather, .csv"), "{}", error.help());
    }
}
