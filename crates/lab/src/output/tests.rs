use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::FileReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

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
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).expect("a parquet file");
    let schema = reader.schema().clone();
    let batch = reader.build().expect("a reader").next().expect("a batch").expect("a sound one");
    check(&RecordBatch::try_new(schema, batch.columns().to_vec()).expect("its own schema"));
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
