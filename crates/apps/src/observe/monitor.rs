//! The thread that observes a command.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use ropewalk_runtime::clock::{Clock, unix_time};
use ropewalk_runtime::endpoint::{
    AssociationSnapshot, Observer, TransportEvent, TransportEventKind,
};
use ropewalk_runtime::seal::PublicKey;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::{MissedTickBehavior, interval};

use super::event::{Event, EventRecord, PeerIdentity, Severity};
use super::history::History;
use super::http::{self, Pages};
use super::ledger::Ledger;
use super::metrics::Figures;
use super::status::{EventStatus, SCHEMA, Status, Transfer, TunnelFigures};

/// Interval at which endpoints publish snapshots.
const SNAPSHOT_INTERVAL: ropewalk_base::Duration = ropewalk_base::Duration::from_millis(250);
/// Interval at which snapshots are folded.
const TICK: Duration = Duration::from_secs(1);
/// Maximum number of events that wait for the thread. Further ones are dropped and counted.
const EVENTS_LIMIT: usize = 4096;
/// Number of events in the status.
const SHOWN_EVENTS: usize = 100;
/// How long a reader waits for new figures of idle endpoints. Their tasks answer immediately, unless the machine is
/// busy.
const FRESH_TIMEOUT: Duration = Duration::from_millis(100);
/// How long the thread waits for its clients at the end.
const END_TIMEOUT: Duration = Duration::from_millis(200);

/// What is observed, and where the observations can be read.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The command, such as `recv`.
    pub command: &'static str,
    /// Version of Ropewalk.
    pub version: &'static str,
    /// Address of the metrics.
    pub metrics: Option<SocketAddr>,
    /// The live page.
    pub web: Option<WebSettings>,
    /// Directory of the status socket.
    pub sockets: Option<PathBuf>,
    /// Interval of [`Sink::interval`], at least 50 ms.
    pub interval: Duration,
}

/// The live page.
#[derive(Clone, Debug)]
pub struct WebSettings {
    /// Where it is served.
    pub address: SocketAddr,
    /// The token that a browser must present, if any.
    pub token: Option<String>,
    /// The page.
    pub html: String,
}

/// An address or socket cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {place}: {error}")]
pub struct BindError {
    /// Address, or path of the socket.
    pub place: String,
    /// Why.
    pub error: io::Error,
}

/// Uses the observations, in the thread.
pub trait Sink: Send {
    /// Handles an event.
    fn event(&mut self, record: &EventRecord);
    /// Called once per second. Seconds without events and readers are skipped, unless [`Self::uses_time`].
    fn tick(&mut self, status: &Status, ledger: &Ledger);
    /// Whether ticks and intervals matter while nothing happens. They wake the process.
    fn uses_time(&self) -> bool {
        false
    }
    /// Called after each [`Settings::interval`], if [`Self::uses_time`], and when the command ends.
    fn interval(&mut self, _: &Status, _: &Ledger) {}
    /// Called when the command ends, directly after the last tick and the last interval.
    fn end(&mut self, status: &Status, ledger: &Ledger);
}

/// Finds the operator's name of a key.
pub type NameOf = Box<dyn Fn(&PublicKey) -> Option<String> + Send>;

/// Callbacks by which the thread queries the application.
pub struct Sources {
    /// The operator's name of a key.
    pub name: NameOf,
    /// Progress of a file transfer.
    pub transfer: Box<dyn Fn() -> Option<Transfer> + Send>,
    /// State of a tunnel.
    pub tunnel: Box<dyn Fn() -> Option<TunnelFigures> + Send>,
}

impl Default for Sources {
    fn default() -> Self {
        Self { name: Box::new(|_| None), transfer: Box::new(|| None), tunnel: Box::new(|| None) }
    }
}

#[derive(Debug)]
enum Message {
    Transport(TransportEvent),
    Application(PeerIdentity, Event),
}

/// Reports events of the application. Never waits.
#[derive(Clone, Debug)]
pub struct Reporter {
    events: mpsc::Sender<(f64, Message)>,
    dropped: Arc<AtomicU64>,
}

impl Reporter {
    /// Reports an event that concerns this peer.
    pub fn report(&self, peer: PeerIdentity, event: Event) {
        self.push(Message::Application(peer, event));
    }

    fn push(&self, message: Message) {
        let is_detail = matches!(&message, Message::Application(_, event) if event.severity() == Severity::Debug);
        let full = self.events.try_send((unix_time().as_secs_f64(), message)).is_err();
        // A folder of many small files causes more events than users read.
        if full && !is_detail {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The state before the thread starts: everything is bound. A server restricts its privileges at this point.
#[derive(Debug)]
pub struct Observation {
    settings: Settings,
    observer: Observer,
    reporter: Reporter,
    events: mpsc::Receiver<(f64, Message)>,
    metrics: Option<TcpListener>,
    web: Option<TcpListener>,
    #[cfg(unix)]
    socket: Option<super::socket::StatusSocket>,
}

impl Observation {
    /// Binds all addresses.
    ///
    /// # Errors
    /// [`BindError`]. A status socket that cannot be bound is left out without an error.
    pub fn bind(settings: Settings) -> Result<Self, BindError> {
        let (sender, events) = mpsc::channel(EVENTS_LIMIT);
        let reporter = Reporter { events: sender, dropped: Arc::default() };
        let transport = reporter.clone();
        let listener = move |event| transport.push(Message::Transport(event));
        // An interval ends with figures that are at most half an interval old.
        let half = settings.interval.as_nanos() as u64 / 2;
        let fresh = SNAPSHOT_INTERVAL.min(ropewalk_base::Duration::from_nanos(half));
        let observer = Observer::new(fresh, listener);
        let listen = |address: SocketAddr| {
            let bound = TcpListener::bind(address).and_then(|listener| {
                listener.set_nonblocking(true)?;
                Ok(listener)
            });
            bound.map_err(|error| BindError { place: address.to_string(), error })
        };
        let metrics = settings.metrics.map(listen).transpose()?;
        let web = settings.web.as_ref().map(|web| listen(web.address)).transpose()?;
        #[cfg(unix)]
        let socket = settings.sockets.as_deref().and_then(|directory| {
            super::socket::StatusSocket::bind(directory, settings.command).ok()
        });
        Ok(Self {
            settings,
            observer,
            reporter,
            events,
            metrics,
            web,
            #[cfg(unix)]
            socket,
        })
    }

    /// For the options of endpoints.
    pub fn observer(&self) -> Observer {
        self.observer.clone()
    }

    /// For the application.
    pub fn reporter(&self) -> Reporter {
        self.reporter.clone()
    }

    /// Where the metrics are served.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref()?.local_addr().ok()
    }

    /// Where the live page is served.
    pub fn web_address(&self) -> Option<SocketAddr> {
        self.web.as_ref()?.local_addr().ok()
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// The system refuses a thread or an event queue.
    pub fn start(self, sources: Sources, sink: Box<dyn Sink>) -> io::Result<Monitor> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let work = move || {
            runtime.block_on(observe(self, sources, sink, stopped));
            runtime.shutdown_timeout(END_TIMEOUT);
        };
        let thread = std::thread::Builder::new().name("observer".to_owned()).spawn(work)?;
        Ok(Monitor { stop: Some(stop), thread: Some(thread) })
    }
}

/// The running thread. It ends when this is dropped, after all events that were reported before.
#[derive(Debug)]
pub struct Monitor {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Monitor {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The state shared by the servers of the thread.
#[derive(Debug)]
pub(super) struct Published {
    /// The status, one line of JSON.
    pub status: watch::Sender<Arc<str>>,
    /// The latest sample of the history, with the events since the one before, as JSON.
    pub sample: watch::Sender<Arc<str>>,
    pub history: Mutex<History>,
    pub figures: Arc<Mutex<Figures>>,
    observer: Observer,
    /// Whether nothing has happened for a while, so that the figures are not updated.
    is_paused: AtomicBool,
    /// A reader wants new figures.
    wanted: Notify,
}

impl Published {
    fn new(observation: &Observation) -> Self {
        let figures = Figures { version: observation.settings.version, ..Figures::default() };
        Self {
            status: watch::Sender::new(Arc::from("")),
            sample: watch::Sender::new(Arc::from("")),
            history: Mutex::default(),
            figures: Arc::new(Mutex::new(figures)),
            observer: observation.observer.clone(),
            is_paused: AtomicBool::new(false),
            wanted: Notify::new(),
        }
    }

    /// Subscribes to the status, whose first value is at most a second old. It is updated every second while there
    /// are subscribers.
    pub async fn subscribe(&self) -> watch::Receiver<Arc<str>> {
        let mut status = self.status.subscribe();
        if self.is_paused.load(Ordering::Relaxed) {
            self.observer.request();
            let _ = tokio::time::timeout(FRESH_TIMEOUT, self.observer.answered()).await;
            self.wanted.notify_one();
            // Fails if the command ends.
            let _ = status.changed().await;
        }
        status
    }
}

async fn observe(
    mut observation: Observation,
    sources: Sources,
    sink: Box<dyn Sink>,
    mut stopped: oneshot::Receiver<()>,
) {
    let published = Arc::new(Published::new(&observation));
    let mut state = State::new(&observation, published.clone(), sources, sink);
    state.tick(false);
    serve(&mut observation, &published);
    let every = |period| {
        let mut ticks = interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        ticks
    };
    let (mut ticks, mut intervals) = (every(TICK), every(observation.settings.interval));
    let uses_time = state.sink.uses_time();
    let observer = observation.observer.clone();
    loop {
        let is_paused = published.is_paused.load(Ordering::Relaxed);
        tokio::select! {
            biased;
            event = observation.events.recv() => match event {
                Some((time_s, message)) => state.take(time_s, message),
                None => break,
            },
            _ = &mut stopped => break,
            () = observer.news(), if is_paused => {}
            () = published.wanted.notified(), if is_paused => {}
            _ = ticks.tick(), if !is_paused => {
                state.tick(false);
                continue;
            }
            _ = intervals.tick(), if uses_time => {
                state.interval();
                continue;
            }
        }
        if is_paused {
            state.tick(true);
            ticks.reset();
        }
    }
    while let Ok((time_s, message)) = observation.events.try_recv() {
        state.take(time_s, message);
    }
    state.tick(false);
    state.end();
}

/// Starts the servers. A listener that the event queue does not accept is left out.
fn serve(observation: &mut Observation, published: &Arc<Published>) {
    let adopt = |listener: TcpListener| tokio::net::TcpListener::from_std(listener).ok();
    if let Some(listener) = observation.metrics.take().and_then(adopt) {
        tokio::spawn(http::serve(listener, Pages::Figures(published.clone())));
    }
    if let (Some(listener), Some(web)) =
        (observation.web.take().and_then(adopt), observation.settings.web.take())
    {
        tokio::spawn(http::serve(listener, Pages::Web(published.clone(), web)));
    }
    #[cfg(unix)]
    if let Some(socket) = observation.socket.take() {
        tokio::spawn(socket.serve(published.clone()));
    }
}

struct State {
    clock: Clock,
    command: &'static str,
    observer: Observer,
    dropped: Arc<AtomicU64>,
    events: VecDeque<EventStatus>,
    /// Number of events.
    recorded: u64,
    /// The activity at the last tick.
    activity: Option<(u64, u64, Option<Transfer>)>,
    never_pauses: bool,
    /// The latest event is of a kind for which only the latest event matters.
    frequent_last: bool,
    published: Arc<Published>,
    sources: Sources,
    sink: Box<dyn Sink>,
}

impl State {
    fn new(
        observation: &Observation,
        published: Arc<Published>,
        sources: Sources,
        sink: Box<dyn Sink>,
    ) -> Self {
        Self {
            clock: Clock::start(),
            command: observation.settings.command,
            observer: observation.observer.clone(),
            dropped: observation.reporter.dropped.clone(),
            events: VecDeque::new(),
            recorded: 0,
            activity: None,
            // The live page shows the last hour.
            never_pauses: observation.settings.web.is_some() || sink.uses_time(),
            frequent_last: false,
            published,
            sources,
            sink,
        }
    }

    fn take(&mut self, time_s: f64, message: Message) {
        let (peer, event) = match message {
            Message::Application(mut peer, event) => {
                let named = || peer.key.as_ref().and_then(&self.sources.name);
                peer.name = peer.name.take().or_else(named);
                (peer, event)
            }
            Message::Transport(event) => {
                let peer = PeerIdentity::of(&event.about, &self.sources.name);
                let mut figures = self.published.figures.lock();
                match &event.kind {
                    TransportEventKind::Established => figures.ledger.open(peer.label()),
                    TransportEventKind::Closed { last, .. } => {
                        figures.ledger.close(peer.label(), last);
                    }
                    _ => {}
                }
                (peer, Event::of_transport(&event))
            }
        };
        self.record(EventRecord { time_s, peer, event });
    }

    fn record(&mut self, record: EventRecord) {
        self.recorded += 1;
        let kind = Event::NAMES.iter().position(|name| *name == record.event.name());
        if let Some(kind) = kind {
            self.published.figures.lock().events[kind] += 1;
        }
        if !record.event.is_private() {
            let is_frequent = record.event.is_frequent();
            if is_frequent && self.frequent_last {
                self.events.pop_back();
            }
            self.frequent_last = is_frequent;
            self.events.push_back(EventStatus::of(&record));
        }
        if self.events.len() > SHOWN_EVENTS {
            self.events.pop_front();
        }
        self.sink.event(&record);
    }

    /// Updates everything that can be read. `was_paused` means that there was no tick until an event occurred.
    fn tick(&mut self, was_paused: bool) {
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let event = Event::Problem(format!("{dropped} events came too fast to be recorded"));
            let time_s = unix_time().as_secs_f64();
            self.record(EventRecord { time_s, peer: PeerIdentity::default(), event });
        }
        self.fold();
        let mut figures = self.published.figures.lock();
        figures.ledger.sample(was_paused);
        figures.transfer = (self.sources.transfer)();
        figures.tunnel = (self.sources.tunnel)();
        let status = self.status(&figures);
        self.sink.tick(&status, &figures.ledger);
        let activity = Some((figures.ledger.activity(), self.recorded, figures.transfer));
        drop(figures);
        let sample = self.published.history.lock().add(&status);
        self.published.sample.send_replace(Arc::from(sample));
        let line = serde_json::to_string(&status).unwrap_or_default();
        self.published.status.send_replace(Arc::from(line));
        let is_read = self.never_pauses || self.published.status.receiver_count() > 0;
        let is_idle = !is_read && activity == self.activity;
        self.activity = activity;
        self.published.is_paused.store(is_idle, Ordering::Relaxed);
        if !is_idle {
            // The last figures before a pause must show that no more traffic passes.
            self.observer.request();
        }
    }

    /// Folds the latest snapshots.
    fn fold(&self) {
        let snapshots = self.observer.snapshots();
        let mut figures = self.published.figures.lock();
        let label = |association: &AssociationSnapshot| {
            PeerIdentity::of(&association.about, &self.sources.name).label()
        };
        figures.ledger.fold(&snapshots, label);
    }

    fn interval(&mut self) {
        self.fold();
        let figures = self.published.figures.lock();
        let status = self.status(&figures);
        self.sink.interval(&status, &figures.ledger);
    }

    fn end(&mut self) {
        self.interval();
        let figures = self.published.figures.lock();
        let status = self.status(&figures);
        self.sink.end(&status, &figures.ledger);
    }

    fn status(&self, figures: &Figures) -> Status {
        Status {
            schema: SCHEMA.to_owned(),
            command: self.command.to_owned(),
            pid: std::process::id(),
            version: figures.version.to_owned(),
            time_s: unix_time().as_secs_f64(),
            uptime_s: self.clock.now().as_secs_f64(),
            transfer: figures.transfer,
            tunnel: figures.tunnel.clone(),
            associations: figures.ledger.association_statuses(),
            links: figures.ledger.link_statuses(),
            events: self.events.iter().cloned().collect(),
        }
    }
}
