//! Tables I and II of Sarwar et al. 2013, row by row.

use ropewalk_models::PacketRange;
use ropewalk_models::slot::{Plan, SlotModel, SlotPath, SlotScheduler, TableRow};

const TABLE_1: &str = include_str!("data/sarwar2013_table1.csv");
const TABLE_2: &str = include_str!("data/sarwar2013_table2.csv");

fn model(scheduler: SlotScheduler) -> SlotModel {
    let fast = SlotPath { delay_ticks: 10, capacity_packets: 2 };
    let slow = SlotPath { delay_ticks: 100, capacity_packets: 5 };
    SlotModel { paths: vec![fast, slow], buffer_packets: 10, scheduler }
}

fn shown(runs: &[PacketRange]) -> String {
    runs.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// A row in the form of the expected files.
fn line(row: &TableRow) -> String {
    let delivered: Vec<PacketRange> = row.delivered.into_iter().collect();
    let (sent, received) = (&row.sent, &row.received);
    [
        row.sent_tick.to_string(),
        shown(&sent[0]),
        shown(&sent[1]),
        row.received_tick.to_string(),
        shown(&received[0]),
        shown(&received[1]),
        shown(&delivered),
        row.in_buffer_packets.to_string(),
    ]
    .join(",")
}

fn expected(file: &str) -> Vec<&str> {
    let rows: Vec<&str> = file.lines().filter(|l| !l.starts_with('#')).skip(1).collect();
    assert!(rows.len() >= 5, "the expected rows are missing");
    rows
}

fn assert_has_rows(scheduler: SlotScheduler, file: &str) {
    let trace = model(scheduler).run(100).unwrap();
    let rows: Vec<String> = trace.table().iter().map(line).collect();
    assert_eq!(rows.len(), 10);
    for row in expected(file) {
        let tick = row.split(',').next().unwrap();
        let ours = rows.iter().find(|r| r.split(',').next() == Some(tick)).unwrap();
        assert_eq!(ours, row);
    }
}

#[test]
fn round_robin_gives_table_1_row_by_row() {
    assert_has_rows(SlotScheduler::RoundRobin, TABLE_1);
}

#[test]
fn delay_aware_gives_table_2_row_by_row() {
    assert_has_rows(SlotScheduler::DelayAware(Plan::perfect()), TABLE_2);
}

#[test]
fn the_rows_that_table_1_leaves_out_are_silent() {
    let table = model(SlotScheduler::RoundRobin).run(100).unwrap().table();
    for row in &table[6..9] {
        assert!(row.sent.iter().all(Vec::is_empty), "{row:?}");
        assert!(row.delivered.is_none() && row.in_buffer_packets == 10, "{row:?}");
    }
}

#[test]
fn the_copy_that_the_reproduction_reads_is_the_same_table() {
    let rows = |file: &'static str| file.lines().filter(|l| !l.starts_with('#'));
    let paper_1 = include_str!("../../../papers/sarwar2013/table1.csv");
    let paper_2 = include_str!("../../../papers/sarwar2013/table2.csv");
    assert!(rows(TABLE_1).eq(rows(paper_1)));
    assert!(rows(TABLE_2).eq(rows(paper_2)));
}
