//! Files on data channels: one file to the peer, and files from the peer.
//!
//! A channel with the protocol `file` carries one file: a JSON text with its name and size, its bytes, and a JSON
//! text with its SHA-256. The peer answers on its channel `control` with a JSON text of the number of bytes and the
//! SHA-256 that it has received.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};
use ropewalk_webrtc::{ChannelId, ChannelOptions, Connection, Event, Message, SendError, Time};
use serde_json::{Value, json};

/// Protocol of channels that carry a file.
const PROTOCOL: &str = "file";
/// Size of a message, bytes.
const PIECE: usize = 64 << 10;
/// Number of bytes in the send buffer above which reading the file pauses.
const HIGH: u64 = 2 << 20;

fn hex(context: Context) -> String {
    context.finish().as_ref().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The file to the peer.
struct Outgoing {
    channel: ChannelId,
    file: File,
    hash: Option<Context>,
    /// A message that did not fit into the send buffer.
    pending: Option<Message>,
    read: u64,
    sha256: String,
}

/// A file of the peer.
struct Incoming {
    file: Option<File>,
    path: PathBuf,
    size: u64,
    bytes: u64,
    hash: Context,
}

/// The progress so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Bytes of the file to the peer that were passed to the network.
    pub sent: u64,
    /// SHA-256 of the file to the peer, once it was read.
    pub sha256: String,
    /// Number of bytes and SHA-256 that the peer has confirmed.
    pub confirmed: Option<(u64, String)>,
    /// Files that the peer has sent, each with its size and SHA-256.
    pub received: Vec<(PathBuf, u64, String)>,
    /// Whether the association ended.
    pub is_over: bool,
}

/// The files of one peer.
pub struct Transfer {
    path: PathBuf,
    size: u64,
    /// Folder for files from the peer. `None` refuses them.
    inbox: Option<PathBuf>,
    outgoing: Option<Outgoing>,
    incoming: BTreeMap<ChannelId, Incoming>,
    pub report: Report,
}

impl Transfer {
    /// Prepares to send the file at `path`.
    ///
    /// # Errors
    /// `path` is not a readable file, or `inbox` is not a folder.
    pub fn new(path: &Path, inbox: Option<&Path>) -> io::Result<Self> {
        let named =
            |path: &Path, why: &dyn Display| io::Error::other(format!("{}: {why}", path.display()));
        let file = File::open(path).and_then(|file| file.metadata());
        let file = file.map_err(|error| named(path, &error))?;
        if !file.is_file() {
            return Err(named(path, &"this is no file: name one"));
        }
        if let Some(inbox) = inbox.filter(|inbox| !inbox.is_dir()) {
            return Err(named(inbox, &"there is no such folder: make it first"));
        }
        let size = file.len();
        Ok(Self {
            path: path.to_owned(),
            size,
            inbox: inbox.map(Path::to_owned),
            outgoing: None,
            incoming: BTreeMap::new(),
            report: Report::default(),
        })
    }

    /// Size of the file, bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Handles the events of the connection, and continues sending.
    pub fn run(&mut self, connection: &mut Connection, now: Time) -> io::Result<()> {
        while let Some(event) = connection.poll_event(now) {
            self.on_event(connection, now, event)?;
        }
        self.send(connection, now)
    }

    fn on_event(&mut self, connection: &mut Connection, now: Time, event: Event) -> io::Result<()> {
        match event {
            Event::Connected => self.begin(connection, now)?,
            Event::Opened { channel, by_peer: true } => {
                let refused = connection.channel(channel).is_some_and(|(options, _)| {
                    options.protocol == PROTOCOL && self.inbox.is_none()
                });
                if refused {
                    connection.close(channel);
                }
            }
            Event::Message { channel, message } => self.on_message(connection, channel, message)?,
            Event::Closed { channel, .. } => drop(self.incoming.remove(&channel)),
            Event::Disconnected(_) => self.report.is_over = true,
            _ => {}
        }
        Ok(())
    }

    /// Opens the channel of the file.
    fn begin(&mut self, connection: &mut Connection, now: Time) -> io::Result<()> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let options = ChannelOptions {
            label: name.clone(),
            protocol: PROTOCOL.to_owned(),
            ..ChannelOptions::default()
        };
        let channel = connection.open(now, options).map_err(io::Error::other)?;
        let head = json!({ "name": name, "size": self.size }).to_string();
        self.outgoing = Some(Outgoing {
            channel,
            file: File::open(&self.path)?,
            hash: Some(Context::new(&SHA256)),
            pending: Some(Message::Text(head)),
            read: 0,
            sha256: String::new(),
        });
        Ok(())
    }

    /// Sends the file until the send buffer is full.
    fn send(&mut self, connection: &mut Connection, now: Time) -> io::Result<()> {
        let Some(outgoing) = &mut self.outgoing else { return Ok(()) };
        while connection.buffered_amount(outgoing.channel) < HIGH {
            let Some(message) = outgoing.next()? else { break };
            match connection.send(now, outgoing.channel, message.clone()) {
                Ok(()) => {}
                Err(SendError::Full | SendError::NotConnected) => {
                    outgoing.pending = Some(message);
                    break;
                }
                // The peer has closed the channel.
                Err(_) => {
                    self.outgoing = None;
                    return Ok(());
                }
            }
        }
        self.report.sent =
            outgoing.read.saturating_sub(connection.buffered_amount(outgoing.channel));
        self.report.sha256.clone_from(&outgoing.sha256);
        Ok(())
    }

    fn on_message(
        &mut self,
        connection: &mut Connection,
        channel: ChannelId,
        message: Message,
    ) -> io::Result<()> {
        let is_file = connection.channel(channel).is_some_and(|(o, _)| o.protocol == PROTOCOL);
        match message {
            Message::Text(text) => {
                let said: Value = serde_json::from_str(&text).unwrap_or_default();
                if !is_file {
                    let hash = said["sha256"].as_str().unwrap_or_default().to_owned();
                    self.report.confirmed = said["received"].as_u64().map(|bytes| (bytes, hash));
                } else if let Some(incoming) = self.incoming.remove(&channel) {
                    self.finish(connection, channel, incoming);
                } else {
                    self.incoming.insert(channel, self.create(&said)?);
                }
            }
            Message::Binary(bytes) => {
                let Some(incoming) = self.incoming.get_mut(&channel) else { return Ok(()) };
                incoming.bytes += bytes.len() as u64;
                incoming.hash.update(&bytes);
                if let Some(file) = &mut incoming.file {
                    file.write_all(&bytes)?;
                }
            }
        }
        Ok(())
    }

    /// Creates a file in the inbox, with the name that the peer gave, without any folder.
    fn create(&self, head: &Value) -> io::Result<Incoming> {
        let name = head["name"].as_str().unwrap_or_default();
        let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
        let name = if name.trim_matches('.').is_empty() { "file" } else { name };
        let path = self.inbox.as_ref().map(|inbox| inbox.join(name)).unwrap_or_default();
        Ok(Incoming {
            // An existing file is not overwritten.
            file: Some(File::create_new(&path)?),
            path,
            size: head["size"].as_u64().unwrap_or_default(),
            bytes: 0,
            hash: Context::new(&SHA256),
        })
    }

    fn finish(&mut self, connection: &mut Connection, channel: ChannelId, incoming: Incoming) {
        let Incoming { path, size, bytes, hash, .. } = incoming;
        if bytes == size {
            self.report.received.push((path, bytes, hex(hash)));
        }
        connection.close(channel);
    }
}

impl Outgoing {
    /// The next message of the file. `None` after the last one.
    fn next(&mut self) -> io::Result<Option<Message>> {
        if let Some(message) = self.pending.take() {
            return Ok(Some(message));
        }
        let Some(hash) = &mut self.hash else { return Ok(None) };
        let mut piece = Vec::with_capacity(PIECE);
        (&self.file).take(PIECE as u64).read_to_end(&mut piece)?;
        if piece.is_empty() {
            self.sha256 = self.hash.take().map(hex).unwrap_or_default();
            return Ok(Some(Message::Text(json!({ "sha256": self.sha256 }).to_string())));
        }
        hash.update(&piece);
        self.read += piece.len() as u64;
        Ok(Some(Message::from(piece)))
    }
}
