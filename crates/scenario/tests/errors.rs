//! Invalid files: each is refused with its line, its value and a correction.

use ropewalk_scenario::{ProblemKind, Scenario, ScenarioError};

use ProblemKind::{
    Conflict, Duplicate, Missing, OutOfRange, Syntax, UnknownKey, UnknownName, Unreadable,
    WrongType, WrongUnit,
};

/// An invalid file: its text, and the line, the kind and a phrase of the first problem.
type Wrong = (&'static str, usize, ProblemKind, &'static str);

const KEYS_AND_TYPES: &[Wrong] = &[
    ("[[path]]\nrate = \"1 Mbit/s", 2, Syntax, "not valid TOML"),
    ("[[path]]\nrate = 1 Mbit/s\n", 2, Syntax, "not valid TOML"),
    ("[[path]]\nrtt = \"1 ms\"\nrtt = \"2 ms\"\n", 3, Syntax, "duplicate"),
    (
        "[transfer]\nrecieve_buffer = \"45 kB\"\n[[path]]\n",
        2,
        UnknownKey,
        "did you mean `receive_buffer`?",
    ),
    (
        "[transfer]\nreceive-buffer = \"45 kB\"\n[[path]]\n",
        2,
        UnknownKey,
        "did you mean `receive_buffer`?",
    ),
    ("[transfer]\nrtt = \"20 ms\"\n[[path]]\n", 2, UnknownKey, "belongs into [[path]]"),
    ("[tranfser]\nseed = 1\n[[path]]\n", 1, UnknownKey, "did you mean `transfer`?"),
    ("seed = 1\n[[path]]\n", 1, UnknownKey, "belongs into [transfer]"),
    ("[[path]]\nzebra = 1\n", 2, UnknownKey, "valid: `name`, `rate`"),
    ("[path]\nrate = \"1 Mbit/s\"\n", 1, WrongType, "is a table"),
    ("path = 7\n", 1, WrongType, "it takes a list"),
    ("[transfer]\nseed = \"one\"\n[[path]]\n", 2, WrongType, "a whole number from 0"),
    ("[transfer]\nseed = 1.5\n[[path]]\n", 2, WrongType, "is a number"),
    ("[transfer]\nunordered = \"yes\"\n[[path]]\n", 2, WrongType, "`true` or `false`"),
    ("[transfer]\nduration = 1979-05-27\n[[path]]\n", 2, WrongType, "a date"),
    ("[[path]]\nloss = \"0.1\"\n", 2, WrongType, "a number from 0 to 1"),
    ("[[path]]\nloss = true\n", 2, WrongType, "a number from 0 to 1"),
    ("[[path]]\nvia = \"bottleneck\"\n", 2, WrongType, "a list, each entry a name"),
    ("[[path]]\nrtt = \"fast\"\n", 2, WrongType, "does not begin with a number"),
    ("[transfer]\nscheduler = 3\n[[path]]\n", 2, WrongType, "`daps`"),
];

const RECOVERY: &[Wrong] = &[
    (
        "[transfer]\nprotocol = \"tcp\"\n[tcp]\nrecovery = \"d-sack\"\nsack = false\n[[path]]\n",
        5,
        Conflict,
        "needs `tcp.sack`",
    ),
    (
        "[transfer]\nprotocol = \"tcp\"\n[tcp]\nrecovery = \"eifel\"\ntimestamps = false\n[[path]]\n",
        5,
        Conflict,
        "needs `tcp.timestamps`",
    ),
    (
        "[transfer]\nprotocol = \"mptcp\"\npreset = \"chihani2011\"\n[tcp]\nrecovery = \"rack-tlp\"\n[[path]]\n",
        5,
        Conflict,
        "not in the model",
    ),
    (
        "[transfer]\nprotocol = \"mptcp\"\npreset = \"chihani2011\"\ncongestion = \"cubic\"\n[[path]]\n",
        4,
        Conflict,
        "not in the model",
    ),
    (
        "[transfer]\nprotocol = \"mptcp\"\n[tcp]\nack_burst_loss = 0.03\n[[path]]\n",
        4,
        Conflict,
        "habit of the preset",
    ),
    (
        "[transfer]\nprotocol = \"mptcp\"\npreset = \"chihani2011\"\n[tcp]\nack_burst_loss = 0.03\nack_burst_loss_max = 0.06\n[[path]]\n",
        6,
        Conflict,
        "exclude each other",
    ),
    (
        "[transfer]\nprotocol = \"mptcp\"\n[tcp]\ndata_waits = true\n[[path]]\n",
        4,
        Conflict,
        "habit of the preset",
    ),
];

const UNITS: &[Wrong] = &[
    ("[[path]]\nrtt = 20\n", 2, WrongUnit, "write \"20 ms\""),
    ("[[path]]\nrtt = \"20\"\n", 2, WrongUnit, "has no unit"),
    ("[[path]]\nrate = 1e6\n", 2, WrongUnit, "Mbit/s"),
    ("[[path]]\nrtt = \"20 furlongs\"\n", 2, WrongUnit, "ns, us, ms, s or min"),
    ("[[path]]\nrtt = \"10 Mbit/s\"\n", 2, WrongUnit, "is a rate"),
    ("[[path]]\nrate = \"10 Mbps\"\n", 2, WrongUnit, "`Mbit/s` for bits or `MB/s` for bytes"),
    ("[[path]]\nrate = \"10 Mb/s\"\n", 2, WrongUnit, "`Mbit/s` for bits or `MB/s` for bytes"),
    ("[[path]]\nrate = \"10 mbit/s\"\n", 2, WrongUnit, "`Mbit/s`"),
    (
        "[transfer]\nreceive_buffer = \"64 KB\"\n[[path]]\n",
        2,
        WrongUnit,
        "`kB` for powers of 1000 or `KiB`",
    ),
    (
        "[transfer]\nreceive_buffer = \"10 BDP\"\n[[path]]\n",
        2,
        WrongUnit,
        "there is no unit `BDP` here",
    ),
    ("[[path]]\nrtt = \"5 sec\"\n", 2, WrongUnit, "did you mean `s`?"),
    ("[[path]]\nqueue = \"50 pkts\"\n", 2, WrongUnit, "packets"),
    ("[[path]]\nqueue = 50\n", 2, WrongUnit, "has no unit"),
    ("[sctp]\nmin_ssthresh = \"4 kB\"\n[[path]]\n", 2, WrongUnit, "is a size"),
];

const NAMES: &[Wrong] = &[
    ("[transfer]\nscheduler = \"dap\"\n[[path]]\n", 2, UnknownName, "did you mean `daps`?"),
    (
        "[transfer]\nscheduler = \"roundrobin\"\n[[path]]\n",
        2,
        UnknownName,
        "did you mean `round-robin`?",
    ),
    (
        "[transfer]\nprotocol = \"quic\"\n[[path]]\n",
        2,
        UnknownName,
        "`cmt-sctp`, `sctp`, `tcp` or `mptcp`",
    ),
    ("[transfer]\nprotocol = \"mtcp\"\n[[path]]\n", 2, UnknownName, "did you mean `tcp`?"),
    (
        "[transfer]\nprotocol = \"tcp\"\npreset = \"rfc9260\"\n[[path]]\n",
        3,
        Conflict,
        "leave it out, or take \"rfc8684\"",
    ),
    ("[transfer]\npreset = \"paper\"\n[[path]]\n", 2, UnknownName, "did you mean `paper-2013`?"),
    ("[transfer]\napplication = \"bulky\"\n[[path]]\n", 2, UnknownName, "`bulk`"),
    ("[[path]]\nqueue = \"infinite\"\n", 2, UnknownName, "`unlimited`"),
    ("[[path]]\nqueue = { discipline = \"fred\" }\n", 2, UnknownName, "did you mean `red`?"),
    (
        "[[path]]\nloss = { model = \"gilbert\", p = 0.1, r = 0.1 }\n",
        2,
        UnknownName,
        "did you mean `gilbert-elliott`?",
    ),
    ("[[path]]\nloss = { model = 5 }\n", 2, WrongType, "not a name"),
    ("[[path]]\nloss = { rate = 0.1 }\n", 2, Missing, "has no `model`"),
    ("[[path]]\nloss = { model = \"bernoulli\", p = 0.1 }\n", 2, Missing, "has no `rate`"),
    (
        "[[path]]\nloss = { model = \"bernoulli\", rate = 0.1, p = 0.1 }\n",
        2,
        UnknownKey,
        "valid: `rate` or `model`",
    ),
    ("[[path]]\nloss = { model = \"trace\" }\n", 2, Missing, "needs `file` or `losses`"),
    ("[[path]]\nname = \"a b\"\n", 2, OutOfRange, "is not a name"),
    ("[[path]]\nname = \"\"\n", 2, OutOfRange, "is not a name"),
    ("[[path]]\nname = \"a\"\n[[path]]\nname = \"a\"\n", 4, Duplicate, "\"a\" is taken already"),
    ("[[path]]\nname = \"a\"\n[[link]]\nname = \"a\"\n", 4, Duplicate, "give this link another"),
    ("[[path]]\nname = \"path2\"\n[[path]]\n", 3, Duplicate, "\"path2\" is taken already"),
    (
        "[[path]]\nvia = [\"botleneck\"]\n[[link]]\nname = \"bottleneck\"\n",
        2,
        UnknownName,
        "did you mean `bottleneck`?",
    ),
    ("[[path]]\nvia = [\"x\"]\n", 2, UnknownName, "the file has none"),
    ("[[path]]\nvia = [\"x\", \"x\"]\n[[link]]\nname = \"x\"\n", 2, Duplicate, "twice"),
    (
        "[[path]]\nname = \"wifi\"\n[[cross]]\nkind = \"cbr\"\non = \"wify\"\n",
        5,
        UnknownName,
        "did you mean `wifi`?",
    ),
    ("[[path]]\n[[cross]]\nkind = \"cbr\"\n", 2, Missing, "has no `on`"),
    ("[[path]]\n[[cross]]\non = \"path1\"\n", 2, Missing, "has no `kind`"),
];

const LIMITS: &[Wrong] = &[
    ("", 1, Missing, "there is no [[path]]"),
    ("path = []\n", 1, OutOfRange, "has 0 entries"),
    ("[[path]]\nrate = \"0 Mbit/s\"\n", 2, OutOfRange, "1 bit/s to 1000 Gbit/s"),
    ("[[path]]\nrate = \"-1 Mbit/s\"\n", 2, OutOfRange, "is negative"),
    ("[[path]]\nrate = \"2000 Gbit/s\"\n", 2, OutOfRange, "nearest valid value is \"1000 Gbit/s\""),
    ("[[path]]\nrate = \"0.5 bit/s\"\n", 2, OutOfRange, "not a whole number of bit/s"),
    ("[[path]]\nrtt = \"-20 ms\"\n", 2, OutOfRange, "is negative"),
    ("[[path]]\nrtt = \"1e30 s\"\n", 2, OutOfRange, "nearest valid value is \"7200 s\""),
    ("[[path]]\nloss = 1.5\n", 2, OutOfRange, "nearest valid value is 1"),
    ("[[path]]\nloss = -0.1\n", 2, OutOfRange, "nearest valid value is 0"),
    ("[[path]]\nloss = nan\n", 2, OutOfRange, "outside of 0 to 1"),
    ("[[path]]\nweight = inf\n", 2, OutOfRange, "1000000"),
    ("[[path]]\nduplicate = 2\n", 2, OutOfRange, "outside of 0 to 1"),
    ("[transfer]\nseed = -1\n[[path]]\n", 2, OutOfRange, "nearest valid value is 0"),
    ("[transfer]\nseed = 99999999999999999999\n[[path]]\n", 2, OutOfRange, "9223372036854775807"),
    ("[transfer]\npacket = \"40 B\"\n[[path]]\n", 2, OutOfRange, "64 B to 65535 B"),
    (
        "[transfer]\npacket = \"10 packets\"\n[[path]]\n",
        2,
        WrongUnit,
        "there is no unit `packets` here",
    ),
    ("[transfer]\nduration = \"0 s\"\n[[path]]\n", 2, OutOfRange, "1 ns to 1000000 s"),
    (
        "[transfer]\nreceive_buffer = \"1000 B\"\n[[path]]\n",
        2,
        OutOfRange,
        "smaller than one packet, 1500 B",
    ),
    ("[transfer]\nreceive_buffer = \"0 packets\"\n[[path]]\n", 2, OutOfRange, "1 to"),
    (
        "[transfer]\nreceive_buffer = \"1.5 packets\"\n[[path]]\n",
        2,
        OutOfRange,
        "not a whole number of packets",
    ),
    ("[transfer]\nreceive_buffer = \"5 GB\"\n[[path]]\n", 2, OutOfRange, "4294967295 B"),
    ("[transfer]\nstreams = 0\n[[path]]\n", 2, OutOfRange, "1 to 65535"),
    (
        "[transfer]\nduration = \"10 s\"\nwarmup = \"10 s\"\n[[path]]\n",
        3,
        Conflict,
        "not shorter than",
    ),
    ("[transfer]\nwarmup = \"70 s\"\n[[path]]\n", 2, Conflict, "`transfer.duration`, 60 s"),
    ("[[path]]\nqueue = \"100 B\"\n", 2, OutOfRange, "smaller than one packet"),
    (
        "[[path]]\nrate = \"1 Mbit/s\"\nrtt = \"1 ms\"\nqueue = \"1 BDP\"\n",
        4,
        OutOfRange,
        "(125 B) is smaller than one packet",
    ),
    ("[[path]]\nqueue = \"-1 BDP\"\n", 2, OutOfRange, "is negative"),
    ("[[path]]\nqueue = \"0 BDP\"\n", 2, OutOfRange, "above 0"),
    ("[transfer]\nwindow_manager = \"static\"\n[[path]]\n", 3, Missing, "needs a `window_limit`"),
    ("[scheduler]\ncopies = 2\n[[path]]\n", 2, OutOfRange, "more than the number of paths, 1"),
    ("[sctp]\nsack_delay = \"1 s\"\n[[path]]\n", 2, OutOfRange, "500 ms"),
    ("[[path]]\nmtu = \"70 kB\"\n", 2, OutOfRange, "65535 B"),
];

const TOGETHER: &[Wrong] = &[
    (
        "[[path]]\nrate = \"1 Mbit/s\"\ntrace = \"x.mahi\"\n",
        3,
        Conflict,
        "`rate` and `trace` exclude each other",
    ),
    ("[[path]]\nrtt = \"1 ms\"\ndelay = \"1 ms\"\n", 3, Conflict, "`rtt` and `delay` exclude"),
    (
        "[[path]]\ndelay_up = \"1 ms\"\nrtt = \"1 ms\"\n",
        3,
        Conflict,
        "`delay_up` and `rtt` exclude",
    ),
    ("[[path]]\ndelay_up = \"1 ms\"\n", 2, Missing, "no `delay_down`"),
    (
        "[transfer]\nscheduler = \"daps\"\n[scheduler]\nname = \"daps\"\n[[path]]\n",
        4,
        Conflict,
        "the same thing twice",
    ),
    (
        "[sctp]\nrto_min = \"2 s\"\nrto_max = \"1 s\"\n[[path]]\n",
        2,
        Conflict,
        "is above `sctp.rto_max`",
    ),
    ("[sctp]\npf_threshold = 9\npath_max_retrans = 5\n[[path]]\n", 2, Conflict, "is above"),
    ("[[path]]\noutages = [{ from = \"2 s\", to = \"1 s\" }]\n", 2, Conflict, "is not later than"),
    ("[[path]]\noutages = [{ from = \"2 s\" }]\n", 2, Missing, "has no `to`"),
    (
        "[[path]]\noutages = [\n  { from = \"2 s\", to = \"4 s\" },\n  { from = \"3 s\", to = \"5 s\" },\n]\n",
        4,
        Conflict,
        "before the end of the outage before it",
    ),
    (
        "[[path]]\nsteps = [{ at = \"2 s\", loss = 0.1 }, { at = \"2 s\", loss = 0 }]\n",
        2,
        Conflict,
        "not later than the step before",
    ),
    ("[[path]]\nsteps = [{ at = \"2 s\" }]\n", 2, Missing, "changes nothing"),
    (
        "[[path]]\nloss = { model = \"markov\", transitions = [[0.5, 0.4], [0.5, 0.5]], loss = [0, 1] }\n",
        2,
        Conflict,
        "sums to 0.9",
    ),
    (
        "[[path]]\nloss = { model = \"markov\", transitions = [[1.0], [0.5, 0.5]], loss = [0, 1] }\n",
        2,
        Conflict,
        "row 0",
    ),
    (
        "[[path]]\nloss = { model = \"markov\", transitions = [[1.0]], loss = [0, 1] }\n",
        2,
        Conflict,
        "2 entries for 1 states",
    ),
    ("[[path]]\nloss = { model = \"trace\", losses = [3, 3] }\n", 2, Conflict, "3 follows 3"),
    (
        "[[path]]\nqueue = { discipline = \"red\", limit = \"unlimited\" }\n",
        2,
        Conflict,
        "leaves RED nothing",
    ),
    ("[[path]]\nqueue = { discipline = \"red\", min = 0.9 }\n", 2, Conflict, "is not below"),
    ("[[path]]\n[[link]]\nqueue = \"2 BDP\"\n", 3, Conflict, "no path crosses this link"),
    (
        "[[path]]\n[[cross]]\nkind = \"greedy\"\non = \"path1\"\nstart = \"2 s\"\nstop = \"2 s\"\n",
        6,
        Conflict,
        "not later than its start",
    ),
    (
        "[[path]]\n[[cross]]\nkind = \"greedy\"\non = \"path1\"\nrate = \"1 Mbit/s\"\n",
        5,
        UnknownKey,
        "no key `rate`",
    ),
    ("[[path]]\ntrace = \"no-such-file.mahi\"\n", 2, Unreadable, "cannot be read"),
    ("[[path]]\ntrace = \"\"\n", 2, WrongType, "a file name"),
    (
        "[[path]]\nloss = { model = \"trace\", file = \"no-such-file.txt\" }\n",
        2,
        Unreadable,
        "relative to the scenario file",
    ),
];

const WIFI: &[Wrong] = &[
    (
        "[[path]]\nwifi = { rate = \"50 Mbit/s\" }\n",
        2,
        OutOfRange,
        "valid: `6 Mbit/s`, `9 Mbit/s`, `12 Mbit/s`",
    ),
    (
        "[[path]]\nwifi = { standard = \"802.11b\", rate = \"54 Mbit/s\" }\n",
        2,
        OutOfRange,
        "`5.5 Mbit/s` or `11 Mbit/s`",
    ),
    (
        "[[path]]\nwifi = { standard = \"802.11b\", rate = \"1 Mbit/s\", preamble = \"short\" }\n",
        2,
        OutOfRange,
        "802.11b with the short preamble",
    ),
    ("[[path]]\nwifi = { standard = \"802.11n\" }\n", 2, UnknownName, "`802.11g`"),
    ("[[path]]\nwifi = { preamble = \"short\" }\n", 2, UnknownKey, "no key `preamble`"),
    ("[[path]]\nwifi = { frame_error = 2 }\n", 2, OutOfRange, "outside of 0 to 1"),
    ("[[path]]\nwifi = { queue = \"2 BDP\" }\n", 2, WrongUnit, "packets"),
    ("[[path]]\nwifi = { end = \"middle\" }\n", 2, UnknownName, "`sender` or `receiver`"),
    (
        "[transfer]\npacket = \"9000 B\"\n[[path]]\nwifi = {}\n",
        4,
        Conflict,
        "do not fit into a frame",
    ),
    ("[[path]]\n[[station]]\npacket = \"3000 B\"\n", 3, OutOfRange, "the largest is 2296 B"),
    (
        "[[path]]\n[[station]]\nstart = \"5 s\"\nstop = \"4 s\"\n",
        4,
        Conflict,
        "not later than its start",
    ),
    ("[[path]]\n[[station]]\nload = \"fast\"\n", 3, WrongType, "does not begin with a number"),
];

const TUNNEL: &[Wrong] = &[
    ("[tunnel]\nredundancy = \"off\"\n[[path]]\n", 1, Conflict, "the file has no [[flow]]"),
    ("[[path]]\n[tunnel]\nredundancy = \"on\"\n", 3, UnknownName, "`off`, `auto` or `always`"),
    (
        "[[path]]\n[tunnel]\nlatency_budget = \"10 s\"\n",
        3,
        OutOfRange,
        "nearest valid value is \"5 s\"",
    ),
    ("[[path]]\n[[flow]]\nname = \"a\"\n", 2, Missing, "has no `kind`"),
    ("[[path]]\n[[flow]]\nkind = \"call\"\n", 2, Missing, "has no `name`"),
    (
        "[[path]]\n[[flow]]\nname = \"a\"\nkind = \"video\"\n",
        4,
        UnknownName,
        "`tcp`, `quic`, `call`, `game`, `dns`, `ping` or `udp`",
    ),
    (
        "[[path]]\n[[flow]]\nname = \"a\"\nkind = \"call\"\nrate = \"1 Mbit/s\"\n",
        5,
        UnknownKey,
        "no key `rate`",
    ),
    (
        "[[path]]\n[[flow]]\nname = \"a\"\nkind = \"call\"\n[[flow]]\nname = \"a\"\nkind = \"game\"\n",
        6,
        Duplicate,
        "\"a\" is taken already",
    ),
    (
        "[[path]]\n[[flow]]\nname = \"a\"\nkind = \"tcp\"\nstart = \"2 s\"\nstop = \"1 s\"\n",
        6,
        Conflict,
        "not later than its start",
    ),
    (
        "[transfer]\nprotocol = \"mptcp\"\n[[path]]\n[[flow]]\nname = \"a\"\nkind = \"tcp\"\n",
        2,
        Conflict,
        "needs SCTP",
    ),
    (
        "[transfer]\npreset = \"rfc9260\"\n[[path]]\n[[flow]]\nname = \"a\"\nkind = \"tcp\"\n",
        2,
        Conflict,
        "take \"live\", or leave it out",
    ),
    (
        "[transfer]\nbytes = \"1 MB\"\n[[path]]\n[[flow]]\nname = \"a\"\nkind = \"tcp\"\n",
        2,
        Conflict,
        "has no effect beside [[flow]]",
    ),
    (
        "[[path]]\n[[flow]]\nname = \"a\"\nkind = \"tcp\"\n[world]\nassociations = 2\n",
        6,
        Conflict,
        "a tunnel is one association",
    ),
];

const SOURCES: &[Wrong] = &[
    ("[[path]]\n[[source]]\n", 2, Missing, "has no `name`"),
    (
        "[[path]]\n[[source]]\nname = \"a\"\n[[source]]\nname = \"a\"\n",
        5,
        Duplicate,
        "\"a\" is taken",
    ),
    ("[[path]]\n[[source]]\nname = \"a\"\nevery = \"0 s\"\n", 4, OutOfRange, "\"1 ms\""),
    (
        "[[path]]\n[[source]]\nname = \"a\"\nstop = \"0 s\"\n",
        4,
        Conflict,
        "not later than its start",
    ),
    (
        "[transfer]\nprotocol = \"tcp\"\n[[path]]\n[[source]]\nname = \"a\"\n",
        2,
        Conflict,
        "needs SCTP",
    ),
    (
        "[transfer]\nstreams = 4\n[[path]]\n[[source]]\nname = \"a\"\n",
        2,
        Conflict,
        "`transfer.streams` has no effect beside [[source]]",
    ),
    (
        "[[path]]\n[[flow]]\nname = \"a\"\nkind = \"ping\"\n[[source]]\nname = \"b\"\n",
        3,
        Conflict,
        "a tunnel or messages of sources, not both",
    ),
    (
        "[[path]]\n[[source]]\nname = \"a\"\n[world]\nassociations = 2\n",
        5,
        Conflict,
        "the sources use one",
    ),
    (
        "[[path]]\n[[source]]\nname = \"a\"\nlifetime = \"100 ms\"\nretransmissions = 0\n",
        5,
        Conflict,
        "`lifetime` and `retransmissions` exclude each other",
    ),
    ("[[path]]\n[[source]]\nname = \"a\"\nlifetime = \"0 s\"\n", 4, OutOfRange, "\"1 ms\""),
    ("[[path]]\n[[source]]\nname = \"a\"\nlifetime = 100\n", 4, WrongUnit, "a time"),
    ("[[path]]\n[[source]]\nname = \"a\"\nretransmissions = 255\n", 4, OutOfRange, "254"),
    (
        "[[path]]\n[[source]]\nname = \"a\"\nunordered = \"yes\"\n",
        4,
        WrongType,
        "`true` or `false`",
    ),
];

const TABLES: [(&str, &[Wrong]); 9] = [
    ("keys_and_types", KEYS_AND_TYPES),
    ("recovery", RECOVERY),
    ("units", UNITS),
    ("names", NAMES),
    ("limits", LIMITS),
    ("together", TOGETHER),
    ("wifi", WIFI),
    ("tunnel", TUNNEL),
    ("sources", SOURCES),
];

fn refused(text: &str) -> ScenarioError {
    match Scenario::parse(text, "wrong.toml") {
        Err(error) => error,
        Ok(_) => panic!("this was taken for a valid scenario:\n{text}"),
    }
}

#[test]
fn every_wrong_file_is_refused_with_its_line_and_what_would_be_right() {
    let mut count = 0;
    for (text, line, kind, phrase) in TABLES.iter().flat_map(|(_, table)| *table) {
        let error = refused(text);
        let first = error.first();
        assert!(error.to_string().contains(phrase), "no {phrase:?} in:\n{error}");
        assert_eq!((first.line, first.kind), (*line, *kind), "\n{error}");
        assert_eq!(first.source_line, text.lines().nth(line - 1).unwrap_or_default());
        count += 1;
    }
    assert!(count >= 100, "{count} wrong files");
}

#[test]
fn the_messages_read_like_this() {
    for (name, table) in TABLES {
        let mut page = String::new();
        for (text, ..) in table {
            page.push_str(&format!("{}\n\n", refused(text)));
        }
        insta::assert_snapshot!(name, page);
    }
}

#[test]
fn the_caret_stands_under_the_value_even_after_tabs_and_wide_letters() {
    let error = refused("[[path]]\n\tname = \"Zürich\" # Straße\nrtt\t= 20\n");
    assert_eq!((error.first().line, error.first().column, error.first().length), (3, 7, 2));
    assert!(error.to_string().contains("3 | rtt\t= 20\n  |    \t  ^^"), "{error}");
}

#[test]
fn up_to_ten_problems_are_told_in_the_order_of_the_file() {
    let keys: String = (0..13).map(|i| format!("zebra{i:02} = 1\n")).collect();
    let error = refused(&format!("[transfer]\n{keys}[[path]]\n"));
    let lines: Vec<_> = error.problems.iter().map(|p| p.line).collect();
    assert_eq!(lines, (2..12).collect::<Vec<_>>());
    assert_eq!(error.omitted, 3);
    assert!(error.to_string().ends_with("... and 3 more"));
}

#[test]
fn prague_is_refused_where_the_protocol_cannot_count_marks() {
    for (text, message) in [
        (
            "[transfer]\nprotocol = \"mptcp\"\ncongestion = \"prague\"\n[[path]]\n",
            "`transfer.congestion` = \"prague\" needs accurate ECN, which \"mptcp\" does not have here",
        ),
        (
            "[transfer]\nprotocol = \"tcp\"\n[world]\nother_congestion = \"prague\"\n[[path]]\n",
            "`world.other_congestion` = \"prague\" needs accurate ECN, which \"tcp\" does not have here",
        ),
    ] {
        let error = refused(text);
        assert_eq!(error.first().kind, Conflict);
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn too_many_paths_are_refused_at_the_first_that_is_too_many() {
    let error = refused(&"[[path]]\n".repeat(65));
    assert_eq!((error.first().line, error.first().kind), (65, OutOfRange));
    assert!(Scenario::parse(&"[[path]]\n".repeat(64), "many.toml").is_ok());
}

#[test]
fn a_scenario_that_cannot_be_read_is_told_by_its_name() {
    let error = Scenario::load("no/such/scenario.toml").unwrap_err();
    assert_eq!((error.first().kind, error.first().line), (Unreadable, 0));
    assert!(error.to_string().contains("no/such/scenario.toml"), "{error}");
}
