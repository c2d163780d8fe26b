//! Associations.

use std::net::IpAddr;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use ropewalk_apps::measure::links::{self, LinkPlan};
use ropewalk_base::Duration;
use ropewalk_runtime::endpoint::{
    AddressError, Association as Native, CloseReason, Copies, Delivery, Endpoint, PathEvent,
    Received, Reconfigured, SendError, Urgency,
};

use super::address_event;
use super::association_control::AssociationControl;
use super::inbox::{Fetched, Inbox};
use super::message::{Message, bytes_of};
use super::net_runtime::NetRuntime;
use super::open::stream_scheduler;
use super::operation::{Operation, Outcome};
use super::stats;
use super::stream_event;
use crate::error;

/// Why nothing more will arrive; `None` if the association was dropped.
type End = Option<CloseReason>;

/// Unordered, immediate, lifetime in seconds, most retransmissions, priority, urgency, on two paths.
type DeliveryOptions = (bool, bool, Option<f64>, Option<u8>, Option<u32>, String, bool);

/// # Errors
/// There is no such urgency.
fn delivery_of(options: DeliveryOptions) -> PyResult<Delivery> {
    let (unordered, immediate, lifetime_s, retransmissions, priority, urgency, twice) = options;
    let urgency = match urgency.as_str() {
        "interactive" => Urgency::Interactive,
        "bulk" => Urgency::Bulk,
        "first-open" => Urgency::FirstOpen,
        "background" => Urgency::Background,
        _ => {
            let known = "interactive, bulk, first-open, background are known";
            return Err(error::option(format_args!("urgency = {urgency:?}: {known}")));
        }
    };
    Ok(Delivery {
        ordered: !unordered,
        immediate,
        lifetime: lifetime_s.map(Duration::from_secs_f64),
        retransmissions,
        priority,
        urgency,
        copies: if twice { Copies::Two } else { Copies::One },
        exceeds_buffer: false,
        context: 0,
    })
}

/// An association, established or ended.
#[pyclass(frozen, module = "ropewalk._ropewalk")]
pub(crate) struct Association {
    net_runtime: &'static NetRuntime,
    inner: Arc<AssociationInner>,
}

struct AssociationInner {
    native: Native,
    messages: Inbox<Received, End>,
    path_events: Inbox<PathEvent, End>,
    stream_events: Inbox<Reconfigured, End>,
    /// The endpoint, at the end that connected: it was opened for this one association.
    _endpoint: Option<Endpoint>,
}

impl Association {
    pub(super) fn new(
        net_runtime: &'static NetRuntime,
        native: Native,
        endpoint: Option<Endpoint>,
    ) -> Self {
        Self {
            net_runtime,
            inner: Arc::new(AssociationInner {
                native,
                messages: Inbox::new(),
                path_events: Inbox::new(),
                stream_events: Inbox::new(),
                _endpoint: endpoint,
            }),
        }
    }

    fn change_address(
        &self,
        py: Python<'_>,
        text: &str,
        change: fn(&Native, IpAddr) -> Result<(), AddressError>,
    ) -> PyResult<()> {
        self.net_runtime.check()?;
        let address = address_event::address(text)?;
        let asked = py.detach(|| change(&self.inner.native, address));
        asked.map_err(address_event::not_requested)
    }
}

impl Association {
    /// # Errors
    /// This is a fork of the process that opened it.
    pub(super) fn check_process(&self) -> PyResult<()> {
        self.net_runtime.check()
    }

    pub(super) fn native(&self) -> &Native {
        &self.inner.native
    }
}

impl AssociationInner {
    async fn fetch_messages(&self) -> Fetched<Received, End> {
        let mut messages = Vec::new();
        self.native.receive_all(&mut messages).await;
        if messages.is_empty() {
            return Fetched::End(self.native.ended().await);
        }
        Fetched::Items(messages)
    }

    async fn fetch_path_events(&self) -> Fetched<PathEvent, End> {
        match self.native.next_path_event().await {
            Some(path_events) => Fetched::Items(vec![path_events]),
            None => Fetched::End(self.native.ended().await),
        }
    }

    async fn fetch_stream_events(&self) -> Fetched<Reconfigured, End> {
        match self.native.next_reconfiguration().await {
            Some(event) => Fetched::Items(vec![event]),
            None => Fetched::End(self.native.ended().await),
        }
    }
}

#[pymethods]
impl Association {
    /// Its status, timers and parameters, and what was not delivered.
    fn control(slf: Bound<'_, Self>) -> AssociationControl {
        AssociationControl::new(slf.unbind())
    }

    /// Queues messages; waits while the send buffer is full.
    fn send(
        &self,
        stream: u16,
        ppid: u32,
        messages: Vec<Bound<'_, PyAny>>,
        delivery: DeliveryOptions,
    ) -> PyResult<Operation> {
        self.net_runtime.check()?;
        let delivery = delivery_of(delivery)?;
        let messages = messages.iter().map(bytes_of).collect::<PyResult<Vec<_>>>()?;
        let inner = self.inner.clone();
        Ok(Operation::new(self.net_runtime, "the send buffer was not free", async move {
            let mut labelled = messages.into_iter().map(|bytes| (ppid, bytes));
            let sent = inner.native.send_all_with(stream, &mut labelled, delivery).await;
            sent.map(|()| Outcome::Nothing).map_err(|error| unsent(&inner.native, stream, error))
        }))
    }

    /// The next message that has arrived.
    fn take(&self, py: Python<'_>) -> Option<Message> {
        self.inner.messages.take().map(|received| Message::new(py, &received))
    }

    /// All messages that have arrived.
    fn take_all(&self, py: Python<'_>) -> Vec<Message> {
        self.inner.messages.take_all().iter().map(|received| Message::new(py, received)).collect()
    }

    /// Waits for messages; false if none will follow.
    fn arrival(&self) -> Operation {
        let inner = self.inner.clone();
        Operation::new(self.net_runtime, "no message came", async move {
            Ok(Outcome::Arrived(inner.messages.arrival(inner.fetch_messages()).await))
        })
    }

    /// The next change of a path or of an address, as a dict.
    fn take_path_event<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let event = self.inner.path_events.take();
        event.map(|event| address_event::dict(py, &event)).transpose()
    }

    /// Waits for a change of a path; false if none will follow.
    fn path_events(&self) -> Operation {
        let inner = self.inner.clone();
        Operation::new(self.net_runtime, "no path changed", async move {
            Ok(Outcome::Arrived(inner.path_events.arrival(inner.fetch_path_events()).await))
        })
    }

    /// The next event about streams, as a dict.
    fn take_stream_event<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let event = self.inner.stream_events.take();
        event.map(|event| stream_event::dict(py, &event)).transpose()
    }

    /// Waits for an event about streams; false if none will follow.
    fn stream_events(&self) -> Operation {
        let inner = self.inner.clone();
        Operation::new(self.net_runtime, "nothing happened to the streams", async move {
            Ok(Outcome::Arrived(inner.stream_events.arrival(inner.fetch_stream_events()).await))
        })
    }

    /// Requests that streams start over; none: all.
    fn reset_streams(&self, py: Python<'_>, streams: Vec<u16>, direction: &str) -> PyResult<()> {
        self.net_runtime.check()?;
        let direction = stream_event::direction(direction)?;
        let asked = py.detach(|| self.inner.native.reset_streams(&streams, direction));
        asked.map_err(stream_event::not_requested)
    }

    /// Requests that TSNs and all streams start over.
    fn reset_association(&self, py: Python<'_>) -> PyResult<()> {
        self.net_runtime.check()?;
        let asked = py.detach(|| self.inner.native.reset_association());
        asked.map_err(stream_event::not_requested)
    }

    /// Requests further streams.
    fn add_streams(&self, py: Python<'_>, outgoing: u16, incoming: u16) -> PyResult<()> {
        self.net_runtime.check()?;
        let asked = py.detach(|| self.inner.native.add_streams(outgoing, incoming));
        asked.map_err(stream_event::not_requested)
    }

    /// Tells the peer that this end has this address as well.
    fn add_address(&self, py: Python<'_>, address: &str) -> PyResult<()> {
        self.change_address(py, address, Native::add_address)
    }

    /// Tells the peer that this end gives up this address.
    fn remove_address(&self, py: Python<'_>, address: &str) -> PyResult<()> {
        self.change_address(py, address, Native::remove_address)
    }

    /// Asks the peer to send to this address of this end first.
    fn request_primary(&self, py: Python<'_>, address: &str) -> PyResult<()> {
        self.change_address(py, address, Native::request_primary)
    }

    /// Sets a secret for authenticated chunks, or replaces it.
    fn set_shared_key(&self, py: Python<'_>, id: u16, key: Vec<u8>) -> PyResult<()> {
        self.net_runtime.check()?;
        let set = py.detach(|| self.inner.native.set_shared_key(id, &key));
        set.map_err(address_event::key_refused)
    }

    /// Authenticates what is sent with this secret from now on.
    fn activate_shared_key(&self, py: Python<'_>, id: u16) -> PyResult<()> {
        self.net_runtime.check()?;
        let set = py.detach(|| self.inner.native.activate_shared_key(id));
        set.map_err(address_event::key_refused)
    }

    /// Stops using a secret for sent packets.
    fn deactivate_shared_key(&self, py: Python<'_>, id: u16) -> PyResult<()> {
        self.net_runtime.check()?;
        let set = py.detach(|| self.inner.native.deactivate_shared_key(id));
        set.map_err(address_event::key_refused)
    }

    /// Deletes a secret.
    fn delete_shared_key(&self, py: Python<'_>, id: u16) -> PyResult<()> {
        self.net_runtime.check()?;
        let set = py.detach(|| self.inner.native.delete_shared_key(id));
        set.map_err(address_event::key_refused)
    }

    /// Raises the reason of the end, unless the end was orderly and all messages were taken.
    fn check_end(&self) -> PyResult<()> {
        match self.inner.messages.end() {
            Some(Some(reason)) if reason != CloseReason::Shutdown => {
                let said = self.inner.native.abort_reason();
                let said = said.map_or(String::new(), |text| format!(", and says: {text}"));
                Err(error::closed(format_args!("the association has ended: {reason}{said}")))
            }
            _ => Ok(()),
        }
    }

    /// Ends the data: waits until everything sent has been acknowledged.
    fn shutdown(&self) -> Operation {
        let inner = self.inner.clone();
        Operation::new(self.net_runtime, "the peer did not acknowledge everything", async move {
            let ended = inner.native.shutdown().await;
            ended.map(|()| Outcome::Nothing).map_err(unflushed)
        })
    }

    /// Waits until the peer has acknowledged everything sent.
    fn flushed(&self) -> Operation {
        let inner = self.inner.clone();
        Operation::new(self.net_runtime, "the peer did not acknowledge everything", async move {
            inner.native.flushed().await;
            match inner.native.close_reason() {
                Some(reason) if !inner.native.is_flushed() => Err(unflushed(reason)),
                _ => Ok(Outcome::Nothing),
            }
        })
    }

    /// Measures the link of each path, for about these seconds and with at most these bytes of probes, and ends the
    /// association. `stem` begins the names of traces.
    fn measure_links(&self, seconds: f64, max_bytes: u64, stem: String) -> Operation {
        let inner = self.inner.clone();
        Operation::new(self.net_runtime, "the measurement did not end", async move {
            let plan = LinkPlan { seconds, max_bytes };
            let found = links::measure(&inner.native, plan, |_, _| {}).await;
            let found = found.map_err(error::closed)?;
            if found.links.iter().all(|link| link.rtt_s.is_none()) {
                return Err(error::closed("no probe arrived on any link in both directions"));
            }
            let names = links::names(&inner.native, &found);
            let files = links::scenario(&found, &names, &stem);
            let document = links::Document::new(&found, &names, &files.toml);
            let document = serde_json::to_string_pretty(&document).map_err(error::run)?;
            Ok(Outcome::Measured(document, files.toml, files.traces))
        })
    }

    /// Aborts the association. The peer is told the reason, unless it is empty.
    fn abort(&self, py: Python<'_>, reason: &str) -> PyResult<()> {
        self.net_runtime.check()?;
        py.detach(|| match reason {
            "" => self.inner.native.abort(),
            reason => self.inner.native.abort_because(reason),
        });
        Ok(())
    }

    /// The statistics; `None` after the end.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.net_runtime.check()?;
        let stats = py.detach(|| self.inner.native.stats());
        stats.map(|stats| stats::dict(py, &stats)).transpose()
    }

    /// Number of streams to send on.
    #[getter]
    fn streams(&self, py: Python<'_>) -> u16 {
        py.detach(|| self.inner.native.streams())
    }

    /// Whether messages of different streams are interleaved.
    #[getter]
    fn interleaves(&self, py: Python<'_>) -> bool {
        py.detach(|| self.inner.native.interleaves())
    }

    /// Whether each end reports data that it will not drop.
    #[getter]
    fn reports_non_renegable(&self, py: Python<'_>) -> bool {
        py.detach(|| self.inner.native.reports_non_renegable())
    }

    /// Whether streams can be reset and added.
    #[getter]
    fn reconfigures(&self, py: Python<'_>) -> bool {
        py.detach(|| self.inner.native.reconfigures())
    }

    /// Whether chunks can be authenticated.
    #[getter]
    fn authenticates(&self, py: Python<'_>) -> bool {
        py.detach(|| self.inner.native.authenticates())
    }

    /// Whether addresses can be added and removed.
    #[getter]
    fn reconfigures_addresses(&self, py: Python<'_>) -> bool {
        py.detach(|| self.inner.native.reconfigures_addresses())
    }

    fn set_stream_scheduler(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.net_runtime.check()?;
        let scheduler = stream_scheduler(name)?;
        py.detach(|| self.inner.native.set_stream_scheduler(scheduler));
        Ok(())
    }

    /// Sets priority or weight of a stream; returns whether the stream exists.
    fn set_stream_value(&self, py: Python<'_>, stream: u16, value: u16) -> PyResult<bool> {
        self.net_runtime.check()?;
        Ok(py.detach(|| self.inner.native.set_stream_value(stream, value)))
    }

    /// Bytes of the largest message that travels in one packet.
    #[getter]
    fn message_size(&self, py: Python<'_>) -> usize {
        py.detach(|| self.inner.native.message_size())
    }

    /// The SCTP ports of this end and of the peer; `None` if the association is sealed or has ended.
    #[getter]
    fn ports(&self, py: Python<'_>) -> Option<(u16, u16)> {
        py.detach(|| self.inner.native.sctp_ports())
    }

    /// The peer's public key.
    #[getter]
    fn peer(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| self.inner.native.peer_key()).map(|key| key.to_string())
    }
}

impl Drop for Association {
    fn drop(&mut self) {
        if !self.net_runtime.belongs_to_this_process() {
            // A lock that was held during a fork stays locked in the child.
            std::mem::forget(self.inner.clone());
        }
    }
}

/// The exception for a message that was refused.
fn unsent(native: &Native, stream: u16, error: SendError) -> PyErr {
    match error {
        SendError::Closed(_) => error::closed(error),
        SendError::Misuse(misuse) => match native.streams() {
            streams if stream >= streams => error::option(format_args!(
                "stream = {stream}: this association has {streams} streams, numbered from 0"
            )),
            _ => error::option(misuse),
        },
    }
}

/// The exception for an association that has ended before everything was acknowledged.
fn unflushed(reason: CloseReason) -> PyErr {
    error::closed(format_args!(
        "the association has ended, and some of what was sent may not have arrived: {reason}"
    ))
}
