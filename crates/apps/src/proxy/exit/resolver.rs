//! Asynchronous name resolution without a thread per name: an abandoned lookup ends immediately.
//!
//! Uses the configuration of the system: its hosts file, name servers and search domains. Both files are read once,
//! when the exit starts, so that a confined exit needs no files afterwards.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::time::Duration;

use hickory_resolver::config::{NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::net::runtime::iocompat::AsyncIoTokioAsStd;
use hickory_resolver::net::runtime::{RuntimeProvider, TokioRuntimeProvider};
use hickory_resolver::{Resolver as Lookup, ResolverBuilder};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::{TcpSocket, UdpSocket};

use crate::proxy::reason::{Reason, ReasonKind};

/// How long a name server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a name server may take to answer outside of a tunnel.
const OUTSIDE_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of answers in the cache, where they stay until their time to live has passed.
const CACHE_ENTRIES: u64 = 4096;
/// Maximum time that an answer is cached, regardless of its time to live.
const CACHE_TIME: Duration = Duration::from_secs(3600);

/// Resolves names by the system's configuration.
#[derive(Clone)]
pub struct Resolver {
    inner: Lookup<Provider>,
}

/// Creates the sockets of lookups.
#[derive(Clone, Default)]
struct Provider {
    /// The mark of the sockets, for the packet filter (Linux); 0 sets none.
    mark: u32,
    /// The interface that they are bound to.
    interface: Option<String>,
    tokio: TokioRuntimeProvider,
}

impl Resolver {
    /// Uses the system's configuration. Without name servers only the hosts file is used, and the returned text says
    /// why.
    ///
    /// # Errors
    /// If the configuration is invalid.
    pub fn system() -> Result<(Self, Option<String>), String> {
        let provider = Provider::default;
        let (builder, problem) = match Lookup::builder(provider()) {
            Ok(builder) => (builder, None),
            Err(error) => {
                let none = ResolverConfig::from_parts(None, Vec::new(), Vec::new());
                let problem = format!(
                    "cannot use the system's name servers: {error}; only names in the hosts file are known"
                );
                (Lookup::builder_with_config(none, provider()), Some(problem))
            }
        };
        Ok((Self { inner: build(builder)? }, problem))
    }

    /// Uses the hosts file and these name servers.
    ///
    /// # Errors
    /// If the configuration is invalid.
    pub fn with_name_servers(servers: &[SocketAddr]) -> Result<Self, String> {
        Self::outside(servers, 0, None)
    }

    /// The same outside of a tunnel, with sockets that have this mark (Linux, `CAP_NET_ADMIN`; 0 sets none) and are
    /// bound to this interface.
    ///
    /// # Errors
    /// If the configuration is invalid.
    pub fn outside(
        servers: &[SocketAddr],
        mark: u32,
        interface: Option<&str>,
    ) -> Result<Self, String> {
        let server = |at: &SocketAddr| {
            let mut server = NameServerConfig::udp_and_tcp(at.ip());
            server.connections.iter_mut().for_each(|connection| connection.port = at.port());
            server
        };
        let servers = servers.iter().map(server).collect();
        let config = ResolverConfig::from_parts(None, Vec::new(), servers);
        let interface = interface.map(str::to_owned);
        let provider = Provider { mark, interface, ..Provider::default() };
        let mut builder = Lookup::builder_with_config(config, provider);
        if mark != 0 {
            // The query may be repeated over other interfaces.
            (builder.options_mut().timeout, builder.options_mut().attempts) = (OUTSIDE_TIMEOUT, 1);
        }
        Ok(Self { inner: build(builder)? })
    }

    /// The addresses of a name.
    ///
    /// # Errors
    /// `ReasonKind::NameUnknown`.
    pub async fn lookup(&self, name: &str) -> Result<Vec<IpAddr>, Reason> {
        let found = self.inner.lookup_ip(name).await.map_err(|error| {
            let why = match error.is_no_records_found() || error.is_nx_domain() {
                true => "there is no such name".to_owned(),
                false => error.to_string(),
            };
            Reason::new(ReasonKind::NameUnknown, format!("{name} cannot be resolved: {why}"))
        })?;
        Ok(found.iter().collect())
    }
}

impl RuntimeProvider for Provider {
    type Handle = <TokioRuntimeProvider as RuntimeProvider>::Handle;
    type Timer = <TokioRuntimeProvider as RuntimeProvider>::Timer;
    type Udp = <TokioRuntimeProvider as RuntimeProvider>::Udp;
    type Tcp = <TokioRuntimeProvider as RuntimeProvider>::Tcp;

    fn create_handle(&self) -> Self::Handle {
        self.tokio.create_handle()
    }

    fn connect_tcp(
        &self,
        server: SocketAddr,
        local: Option<SocketAddr>,
        limit: Option<Duration>,
    ) -> Pin<Box<dyn Send + Future<Output = io::Result<Self::Tcp>>>> {
        if self.mark == 0 {
            return self.tokio.connect_tcp(server, local, limit);
        }
        let this = self.clone();
        Box::pin(async move {
            let socket = if server.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
            this.restrict(SockRef::from(&socket))?;
            let connected = socket.connect(server);
            let limit = limit.unwrap_or(CONNECT_TIMEOUT);
            Ok(AsyncIoTokioAsStd(tokio::time::timeout(limit, connected).await??))
        })
    }

    fn bind_udp(
        &self,
        local: SocketAddr,
        server: SocketAddr,
    ) -> Pin<Box<dyn Send + Future<Output = io::Result<Self::Udp>>>> {
        if self.mark == 0 {
            return self.tokio.bind_udp(local, server);
        }
        let this = self.clone();
        Box::pin(async move {
            let domain = Domain::for_address(local);
            let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
            this.restrict(SockRef::from(&socket))?;
            socket.set_nonblocking(true)?;
            socket.bind(&local.into())?;
            UdpSocket::from_std(socket.into())
        })
    }
}

impl Provider {
    #[cfg(target_os = "linux")]
    fn restrict(&self, socket: SockRef<'_>) -> io::Result<()> {
        socket.set_mark(self.mark)?;
        socket.bind_device(self.interface.as_deref().map(str::as_bytes))
    }

    #[cfg(not(target_os = "linux"))]
    fn restrict(&self, _: SockRef<'_>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn build(mut builder: ResolverBuilder<Provider>) -> Result<Lookup<Provider>, String> {
    let options = builder.options_mut();
    options.use_hosts_file = ResolveHosts::Always;
    options.cache_size = CACHE_ENTRIES;
    options.positive_max_ttl = Some(CACHE_TIME);
    options.negative_max_ttl = Some(CACHE_TIME);
    builder.build().map_err(|error| format!("cannot resolve names: {error}"))
}
