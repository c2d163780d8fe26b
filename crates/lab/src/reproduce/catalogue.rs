//! The catalogue of items that can be reproduced.

/// A table, figure or claim of a paper, or a table of another simulator (a peer).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Name of the folder.
    pub paper: &'static str,
    /// Name within it.
    pub name: &'static str,
    /// Description of the item.
    pub title: &'static str,
}

impl Item {
    /// The full name `paper/item`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.paper, self.name)
    }
}

const fn item(paper: &'static str, name: &'static str, title: &'static str) -> Item {
    Item { paper, name, title }
}

/// All items, in the order in which reports show them.
pub const ITEMS: [Item; 42] = [
    item("slides2013", "tmaxblock", "maximum blocking time: model, simulation, ns-2"),
    item("slides2013", "cases", "delay-aware against round robin on three pairs of paths"),
    item("kuhn2014", "receive-buffer-min", "least receive buffer that never blocks (Eq 3)"),
    item("kuhn2014", "slow-path-use", "use of the slow path"),
    item("kuhn2014", "throughput", "throughput of both paths, and the flow-control bound"),
    item("kuhn2014", "application-delay", "from first transmission to in-order delivery"),
    item("kuhn2014", "occupancy-small", "out-of-order data in a small receive buffer"),
    item("kuhn2014", "occupancy-large", "out-of-order data in a large receive buffer"),
    item("sarwar2013", "receive-buffer-min", "least receive buffer that never blocks (Eq 2)"),
    item("sarwar2013", "period", "packets per forward delay and per period (Eq 3 and 4)"),
    item("sarwar2013", "order", "order of reception (Eq 5)"),
    item("sarwar2013", "forward-delay", "forward delay by timestamps (Eq 6, Figure 3)"),
    item("sarwar2013", "table1", "Table I: round robin packet by packet"),
    item("sarwar2013", "table2", "Table II: delay-aware packet by packet"),
    item("sarwar2013", "figures-1-2", "Figures 1 and 2: five seconds of round robin"),
    item("sarwar2013", "figures-5-6", "Figures 5 and 6: goodput and occupancy in the slot model"),
    item("sarwar2013", "figures-7-8", "Figures 7 and 8: wrong delays in the slot model"),
    item("sarwar2013", "long-run", "a minute on the same paths in the packet engine"),
    item("wallace2014", "figure-5", "Figure 5: both models against packets, loss varied"),
    item("wallace2014", "figure-6", "Figure 6: the same, rate varied"),
    item("wallace2014", "figure-6-20ms", "Figure 6 as its printed numbers fit together"),
    item("wallace2014", "figure-7", "Figure 7: the same, delay varied"),
    item("wallace2014", "figure-8", "Figure 8: the same, receive buffer varied"),
    item("wallace2014", "ns2", "the points of Figure 5 against ns-2"),
    item("wallace2014", "figure-9", "Figure 9: static against dynamic windows, b_2 varied"),
    item("wallace2014", "windows", "window limits printed with Figure 9"),
    item("wallace2014", "figure-10", "Figure 10: the same, receive buffer varied"),
    item("wallace2014", "figure-11", "Figure 11: the same, p_2 varied"),
    item("wallace2014", "figure-12", "Figure 12: the same, d_2 varied"),
    item("wallace2014", "figure-13", "Figure 13: the heuristic's throughput"),
    item(
        "wallace2014",
        "figure-14",
        "Figure 14: the heuristic's search, and its iterations (Section 5.3)",
    ),
    item("alheid2016", "scenario-1", "802.11g 54 + 54: model = chihani2011, simulated = rfc8684"),
    item("alheid2016", "scenario-2", "802.11b 2 + 2: model = chihani2011, simulated = rfc8684"),
    item("alheid2016", "scenario-3", "802.11g 54 + b 2: model = chihani2011, simulated = rfc8684"),
    item("alheid2016", "scenario-4", "802.11g 6 + b 2: model = chihani2011, simulated = rfc8684"),
    item("alheid2016", "rank-correlation", "order of the fifteen cells under chihani2011"),
    item("alheid2016", "claims", "what the study says, under chihani2011"),
    item("alheid2016", "collapse", "how far the recoveries are apart: chihani2011 and rfc8684"),
    item("alheid2016", "rack-tlp", "RACK-TLP against the others and against both links, rfc8684"),
    item("ns2", "sarwar", "round robin against ns-2: buffers of 10 to 100 packets"),
    item("ns2", "kuhn", "round robin against ns-2: six cases, two queues"),
    item("ns2", "blocking", "round robin against ns-2: blocking times"),
];

/// Finds items by name: `paper/item`, or a paper for all of its items. A prefix suffices if it matches only one
/// paper (`kuhn`) or only one item (`kuhn/thr`, `thr`). Otherwise the result is empty.
pub fn find(name: &str) -> Vec<Item> {
    let all = |matches: &dyn Fn(&Item) -> bool| -> Vec<Item> {
        ITEMS.iter().filter(|item| matches(item)).copied().collect()
    };
    let only_one = |found: Vec<Item>, same: &dyn Fn(&Item, &Item) -> bool| {
        let one = found.iter().all(|item| same(item, &found[0]));
        if one { found } else { Vec::new() }
    };
    let (paper, item) = name.split_once('/').unwrap_or((name, ""));
    let tries: [&dyn Fn() -> Vec<Item>; 4] = [
        &|| all(&|i| i.full_name() == name || i.paper == name),
        &|| only_one(all(&|i| i.paper.starts_with(name)), &|a, b| a.paper == b.paper),
        &|| all(&|i| i.paper.starts_with(paper) && i.name == item),
        &|| {
            only_one(all(&|i| i.paper.starts_with(paper) && i.name.starts_with(item)), &|a, b| {
                a == b
            })
        },
    ];
    if name.is_empty() {
        return Vec::new();
    }
    let found = tries.iter().map(|attempt| attempt()).find(|found| !found.is_empty());
    found.unwrap_or_else(|| only_one(all(&|i| i.name.starts_with(name)), &|a, b| a == b))
}

#[cfg(test)]
mod tests {
    use super::super::data::FOLDERS;
    use super::super::expected::{expected, reasons};
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_statement_belongs_to_an_item_and_every_item_has_statements() {
        let mut stated: BTreeSet<String> = BTreeSet::new();
        for expected in FOLDERS.iter().filter_map(|f| expected(f).unwrap()) {
            for entry in &expected.items {
                stated.insert(format!("{}/{}", expected.paper, entry.group));
            }
        }
        // The statements of a peer are the rows of its tables.
        let tables = FOLDERS.iter().find(|f| f.name == "ns2").unwrap().files.iter();
        let tables = tables.filter_map(|(name, _)| name.strip_suffix(".csv"));
        stated.extend(tables.map(|name| format!("ns2/{name}")));
        let known = ITEMS.iter().map(Item::full_name).collect();
        assert_eq!(stated, known);
    }

    #[test]
    fn every_reason_is_about_an_item() {
        for folder in &FOLDERS {
            for reason in reasons(folder).unwrap().reasons {
                let name = format!("{}/{}", folder.name, reason.item);
                assert_eq!(find(&name).len(), 1, "{name}");
            }
        }
    }

    #[test]
    fn items_are_found_alone_by_paper_and_by_a_beginning_that_fits_once() {
        for (name, number) in [
            ("kuhn2014/throughput", 1),
            ("kuhn2014", 6),
            ("kuhn", 6),
            ("kuhn/thr", 1),
            ("throughput", 1),
            ("tmax", 1),
            // Ambiguous prefix.
            ("s", 0),
            ("kuhn/occ", 0),
            ("receive-buffer-min", 0),
            // Matches the paper, not the peer's table of the same name.
            ("sarwar", 10),
            ("ns2/kuhn", 1),
            ("nobody", 0),
            ("", 0),
        ] {
            assert_eq!(find(name).len(), number, "{name}");
        }
    }
}
