//! Listeners.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use ropewalk_runtime::endpoint::{Association as Native, Endpoint, SctpPorts, Target};
use tokio::sync::watch;

use super::association::Association;
use super::inbox::{Fetched, Inbox};
use super::key::public_key;
use super::limits;
use super::net_runtime::NetRuntime;
use super::open::{Attempt, UNANSWERED, address};
use super::operation::{Operation, Outcome, duration};
use crate::error;

/// Sockets that wait for associations.
#[pyclass(frozen, module = "ropewalk._ropewalk")]
pub(crate) struct Listener {
    net_runtime: &'static NetRuntime,
    endpoint: Mutex<Option<Arc<Endpoint>>>,
    opened: Arc<Inbox<Native, ()>>,
    closed: watch::Sender<bool>,
    /// The addresses at which it listens.
    #[pyo3(get)]
    addresses: Vec<String>,
    /// Its public key; `None` without encryption.
    #[pyo3(get)]
    public_key: Option<String>,
}

impl Listener {
    pub(super) fn new(
        net_runtime: &'static NetRuntime,
        endpoint: Endpoint,
        public_key: Option<String>,
    ) -> Self {
        let addresses = endpoint.locals().iter().map(ToString::to_string).collect();
        Self {
            net_runtime,
            endpoint: Mutex::new(Some(Arc::new(endpoint))),
            opened: Arc::new(Inbox::new()),
            closed: watch::Sender::new(false),
            addresses,
            public_key,
        }
    }

    fn endpoint(&self) -> Option<Arc<Endpoint>> {
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[pymethods]
impl Listener {
    /// The next association that a peer has opened.
    fn take(&self) -> Option<Association> {
        self.opened.take().map(|native| Association::new(self.net_runtime, native, None))
    }

    /// Waits for associations; false if the listener is or becomes closed.
    fn arrival(&self) -> Operation {
        let (endpoint, opened) = (self.endpoint(), self.opened.clone());
        let mut closed = self.closed.subscribe();
        Operation::new(self.net_runtime, "no association was opened", async move {
            let next = async {
                let Some(endpoint) = endpoint else { return Fetched::End(()) };
                tokio::select! {
                    biased;
                    native = endpoint.accept() => Fetched::Items(vec![native]),
                    _ = closed.wait_for(|closed| *closed) => Fetched::End(()),
                }
            };
            Ok(Outcome::Arrived(opened.arrival(next).await))
        })
    }

    /// What has arrived and what was refused so far, as a dict; none if it is closed.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.net_runtime.check()?;
        let endpoint = self.endpoint();
        let counters = py.detach(|| endpoint.as_ref().map(|endpoint| endpoint.counters()));
        counters.map(|counters| limits::counters(py, &counters)).transpose()
    }

    /// Connects from its sockets.
    fn connect(
        &self,
        to: Vec<String>,
        peer: Option<String>,
        ports: (Option<u16>, u16),
        seconds: f64,
    ) -> PyResult<Operation> {
        let patience = duration(seconds)?;
        let addresses = to.iter().map(|text| address(text)).collect::<PyResult<Vec<_>>>()?;
        let key = peer.map(|text| public_key("peer", &text)).transpose()?;
        let endpoint = self.endpoint().ok_or_else(|| error::closed("the listener is closed"))?;
        let attempt = Attempt {
            target: Target { addresses, key },
            ports: SctpPorts { local: ports.0, remote: ports.1 },
            own: self.public_key.clone(),
            patience,
        };
        let net_runtime = self.net_runtime;
        Ok(Operation::new(net_runtime, UNANSWERED, async move {
            let native = attempt.run(&endpoint).await?;
            Ok(Outcome::Association(Association::new(net_runtime, native, None)))
        }))
    }

    /// Accepts no more associations. Accepted ones continue; pending ones are aborted.
    fn close(&self, py: Python<'_>) {
        let endpoint = self.endpoint.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(endpoint) = endpoint.filter(|_| self.net_runtime.check().is_ok()) else { return };
        self.closed.send_replace(true);
        py.detach(|| {
            let _inside = self.net_runtime.runtime.enter();
            let untaken = self.opened.take_all().into_iter().chain(waiting(&endpoint));
            untaken.for_each(|native| native.abort());
        });
    }

    /// Whether it is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.endpoint().is_none()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if !self.net_runtime.belongs_to_this_process() {
            // As for associations: a lock that was held at a fork stays locked.
            std::mem::forget((self.endpoint(), self.opened.clone()));
        }
    }
}

/// The established associations that have not been accepted.
fn waiting(endpoint: &Endpoint) -> impl Iterator<Item = Native> {
    std::iter::from_fn(|| {
        let mut context = Context::from_waker(Waker::noop());
        match pin!(endpoint.accept()).poll(&mut context) {
            Poll::Ready(native) => Some(native),
            Poll::Pending => None,
        }
    })
}
