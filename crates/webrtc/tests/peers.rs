//! Complete WebRTC stacks as processes: a peer offers a connection on its standard output, reads the answer, opens
//! channels, echoes messages on channels of this end, and reports the result of each channel. The test compares every
//! byte.

#![expect(clippy::disallowed_methods, reason = "a test in real time gives up after a while")]

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ring::digest::{SHA256, digest};
use ropewalk_webrtc::{
    ChannelClosed, ChannelId, ChannelOptions, Config, Connection, DtlsRole, Event, Message,
    Reliability, Time, priority,
};
use serde_json::Value;

use crate::transport::Server;

/// Bytes of the file that a peer sends, and of the one that this end sends.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub theirs: usize,
    pub ours: usize,
}

/// A running peer, which is killed when the test ends.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How the channels end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Finish {
    /// The peer closes all channels.
    TheyClose,
    /// This end closes all channels.
    WeClose,
    /// This end shuts the association down.
    Shutdown,
}

/// The behaviour of this end.
struct Ours {
    sizes: Sizes,
    finish: Finish,
    /// Channels of this end, by label.
    own: BTreeMap<&'static str, ChannelId>,
    /// Messages that did not fit into the send buffer.
    queue: VecDeque<(ChannelId, Message)>,
    /// Messages received on the channels of this end.
    back: BTreeMap<ChannelId, Vec<Message>>,
    closed: BTreeMap<ChannelId, ChannelClosed>,
    /// Channels of the peer with their labels and the number of their messages.
    theirs: BTreeMap<ChannelId, (String, usize)>,
    /// Bytes of the peer's file.
    bytes: usize,
}

fn file(size: usize) -> Vec<u8> {
    (0..size).map(|at| ((at * 7) >> 2) as u8).collect()
}

impl Ours {
    fn new(sizes: Sizes, finish: Finish) -> Self {
        Self {
            sizes,
            finish,
            own: BTreeMap::new(),
            queue: VecDeque::new(),
            back: BTreeMap::new(),
            closed: BTreeMap::new(),
            theirs: BTreeMap::new(),
            bytes: 0,
        }
    }

    fn open(&mut self, connection: &mut Connection, now: Time) {
        let all = [
            ("file", ChannelOptions::default()),
            ("unordered", ChannelOptions { ordered: false, ..ChannelOptions::default() }),
            (
                "limited",
                ChannelOptions {
                    ordered: false,
                    reliability: Reliability::Retransmissions(2),
                    protocol: "p".to_owned(),
                    priority: priority::HIGH,
                    ..ChannelOptions::default()
                },
            ),
        ];
        for (label, options) in all {
            let options = ChannelOptions { label: label.to_owned(), ..options };
            let channel = connection.open(now, options).expect("a number is free");
            self.own.insert(label, channel);
        }
        let [file_channel, unordered, limited] =
            ["file", "unordered", "limited"].map(|l| self.own[l]);
        let pieces = file(self.sizes.ours)
            .chunks(60_000)
            .map(|piece| Message::from(piece.to_vec()))
            .collect::<Vec<_>>();
        self.queue.extend(pieces.into_iter().map(|piece| (file_channel, piece)));
        for number in 0..50 {
            self.queue.push_back((unordered, Message::from(format!("ß {number}"))));
            self.queue.push_back((unordered, Message::from(String::new())));
            self.queue.push_back((unordered, Message::from(Vec::new())));
            self.queue.push_back((limited, Message::from(vec![number; 100])));
        }
    }

    fn on_event(&mut self, connection: &mut Connection, now: Time, event: Event) {
        match event {
            Event::Connected => self.open(connection, now),
            Event::Opened { channel, by_peer: true } => {
                let (options, _) = connection.channel(channel).expect("it is open");
                self.theirs.insert(channel, (options.label.clone(), 0));
            }
            Event::Message { channel, message } => match self.theirs.get_mut(&channel) {
                Some((label, count)) => {
                    *count += 1;
                    self.bytes += if label == "file" { message.len() } else { 0 };
                    self.queue.push_back((channel, message));
                }
                None => self.back.entry(channel).or_default().push(message),
            },
            Event::Closed { channel, reason } => drop(self.closed.insert(channel, reason)),
            _ => {}
        }
    }

    fn send(&mut self, connection: &mut Connection, now: Time) {
        while let Some((channel, message)) = self.queue.pop_front() {
            if connection.send(now, channel, message.clone()).is_err() {
                self.queue.push_front((channel, message));
                return;
            }
        }
    }

    fn finish(&self, connection: &mut Connection, now: Time) {
        match self.finish {
            Finish::TheyClose => {}
            Finish::WeClose => {
                let all: Vec<ChannelId> = connection.channels().collect();
                all.into_iter().for_each(|channel| connection.close(channel));
            }
            Finish::Shutdown => connection.shutdown(now),
        }
    }

    /// The progress of the test, for the message of a failure.
    fn state(&self, server: &mut Server) -> String {
        let now = server.now();
        let stats: Vec<_> = server
            .peers()
            .iter_mut()
            .map(|peer| (peer.ended().map(str::to_owned), peer.connection().map(|c| c.stats(now))))
            .collect();
        let back: Vec<_> = self.back.iter().map(|(channel, all)| (channel, all.len())).collect();
        let Self { bytes, theirs, closed, queue, .. } = self;
        format!("{bytes} B, {theirs:?}, {back:?}, {} queued, {closed:?}, {stats:?}", queue.len())
    }

    /// Whether all that is reliable has arrived.
    fn has_all(&self) -> bool {
        let bytes = |label| {
            let back = self.own.get(label).and_then(|channel| self.back.get(channel));
            back.map_or(0, |messages| messages.iter().map(Message::len).sum::<usize>())
        };
        let texts = self.own.get("unordered").and_then(|channel| self.back.get(channel));
        let theirs = self.theirs.values().any(|one| *one == ("unordered".to_owned(), 100));
        let back = bytes("file") == self.sizes.ours && texts.is_some_and(|all| all.len() == 150);
        self.bytes == self.sizes.theirs && theirs && back && self.queue.is_empty()
    }
}

/// Runs both ends to the end; what the peer reports of each channel.
fn run(mut command: Command, sizes: Sizes, is_active: bool, finish: Finish) -> (Ours, Vec<Value>) {
    command
        .arg(format!("--bytes={}", sizes.theirs))
        .arg(format!("--close={}", finish == Finish::TheyClose));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut peer = Process(command.spawn().expect("the peer starts"));
    let mut lines = BufReader::new(peer.0.stdout.take().expect("piped")).lines();
    let offer = lines.next().expect("an offer").expect("text");
    let offer: String = serde_json::from_str(&offer).expect("JSON");

    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut server = Server::bind(any, Config::new(DtlsRole::Server)).expect("a socket");
    server.is_active = is_active;
    let (answer, _) = server.accept(&offer).expect("an offer of data channels");
    let mut stdin = peer.0.stdin.take().expect("piped");
    writeln!(stdin, "{}", Value::from(answer)).expect("the peer reads");

    let mut ours = Ours::new(sizes, finish);
    let deadline = Instant::now() + Duration::from_secs(50);
    let mut report = None;
    let (done, reported) = std::sync::mpsc::channel();
    std::thread::spawn(move || lines.try_for_each(|line| done.send(line)));
    let mut they_have_all = false;
    while report.is_none() || ours.closed.len() < 7 {
        assert!(Instant::now() < deadline, "not done: {}", ours.state(&mut server));
        server.receive().expect("the socket works");
        let now = server.now();
        for peer in server.peers() {
            assert!(peer.ended().is_none() || finish == Finish::Shutdown, "{:?}", peer.ended());
            let Some(connection) = peer.connection() else { continue };
            while let Some(event) = connection.poll_event(now) {
                ours.on_event(connection, now, event);
            }
            ours.send(connection, now);
            if they_have_all && ours.has_all() && connection.is_flushed() {
                ours.finish(connection, now);
            }
        }
        server.flush();
        for line in reported.try_iter().map(|line| line.expect("text")) {
            match line.as_str() {
                "received" => they_have_all = true,
                _ => report = Some(line),
            }
        }
    }
    drop(stdin);
    let report = report.expect("a report");
    let channels: Vec<Value> = serde_json::from_str(&report).expect("JSON");
    (ours, channels)
}

/// Runs a peer as DTLS client and as DTLS server, and lets the channels end in each of these ways. `start` makes the command
/// of the peer.
pub fn files_and_messages_cross(start: impl Fn() -> Command, sizes: Sizes, all: &[Finish]) {
    for (is_active, finish) in all.iter().flat_map(|one| [(false, *one), (true, *one)]) {
        let (ours, channels) = run(start(), sizes, is_active, finish);
        check_theirs(&ours, &channels, is_active);
        check_ours(&ours, &channels);
        let reason = match finish {
            Finish::TheyClose => ChannelClosed::ByPeer,
            Finish::WeClose => ChannelClosed::Here,
            Finish::Shutdown => ChannelClosed::Association,
        };
        assert!(ours.closed.values().all(|closed| *closed == reason), "{:?}", ours.closed);
    }
}

fn of<'a>(channels: &'a [Value], label: &str, ids: &[u64]) -> &'a Value {
    let found = channels.iter().find(|one| {
        one["label"] == label && one["id"].as_u64().is_some_and(|id| ids.contains(&id))
    });
    found.unwrap_or_else(|| panic!("{label} {ids:?}: {channels:?}"))
}

/// The channels that the peer has opened.
fn check_theirs(ours: &Ours, channels: &[Value], is_active: bool) {
    let ids: Vec<u64> = ours.theirs.keys().map(|channel| channel.0.into()).collect();
    // RFC 8832, 6: the peer is the DTLS client, with even numbers, unless this end is.
    assert!(ids.iter().all(|id| id % 2 == u64::from(is_active)), "{ids:?}");
    let file = of(channels, "file", &ids);
    let expected: Vec<u8> = (0..ours.sizes.theirs).map(|at| ((at * 31) >> 3) as u8).collect();
    assert_eq!(file["bytes"], ours.sizes.theirs);
    assert_eq!(file["sha256"].as_str(), Some(hex(&expected).as_str()));
    let unordered = of(channels, "unordered", &ids);
    assert_eq!((&unordered["messages"], &unordered["texts"]), (&100.into(), &100.into()));
    for (label, least) in [("unordered", 100), ("once", 50), ("timed", 50)] {
        let count = ours.theirs.values().find(|(one, _)| one == label).map_or(0, |(_, n)| *n);
        assert!((least..=100).contains(&count), "{label}: {count}");
    }
}

/// The channels that this end has opened.
fn check_ours(ours: &Ours, channels: &[Value]) {
    let ids: Vec<u64> = ours.own.values().map(|channel| channel.0.into()).collect();
    let (report, sent) = (of(channels, "file", &ids), file(ours.sizes.ours));
    assert_eq!((&report["bytes"], &report["ordered"]), (&ours.sizes.ours.into(), &true.into()));
    assert_eq!(report["sha256"].as_str(), Some(hex(&sent).as_str()));
    let back: Vec<u8> = ours.back[&ours.own["file"]].iter().flat_map(bytes).collect();
    assert!(back == sent, "the file has come back whole");
    let unordered = of(channels, "unordered", &ids);
    assert_eq!((&unordered["empty"], &unordered["ordered"]), (&100.into(), &false.into()));
    assert_eq!(unordered["texts"], 100);
    let limited = of(channels, "limited", &ids);
    assert_eq!((&limited["max_retransmits"], &limited["protocol"]), (&2.into(), &"p".into()));
}

fn bytes(message: &Message) -> Vec<u8> {
    match message {
        Message::Binary(bytes) => bytes.to_vec(),
        Message::Text(text) => text.clone().into_bytes(),
    }
}

fn hex(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
