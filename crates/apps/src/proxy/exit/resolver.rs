//! Asynchronous name resolution without a thread per name: an abandoned lookup ends at once.
//!
//! Uses the configuration of the system: its hosts file, name servers and search domains. Both files are read once,
//! when the exit starts, so that a confined exit needs no files afterwards.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hickory_resolver::config::{NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::{ResolverBuilder, TokioResolver};

use crate::proxy::reason::{Reason, ReasonKind};

/// Most answers in the cache, where they stay until their time to live has passed.
const CACHE_ENTRIES: u64 = 4096;
/// Longest time that an answer is cached, whatever its time to live.
const CACHE_TIME: Duration = Duration::from_secs(3600);

/// Resolves names by the system's configuration.
#[derive(Clone)]
pub struct Resolver {
    inner: TokioResolver,
}

impl Resolver {
    /// Uses the system's configuration. Without name servers only the hosts file is used, and the returned text says
    /// why.
    ///
    /// # Errors
    /// If the configuration is invalid.
    pub fn system() -> Result<(Self, Option<String>), String> {
        let provider = TokioRuntimeProvider::default;
        let (builder, problem) = match TokioResolver::builder(provider()) {
            Ok(builder) => (builder, None),
            Err(error) => {
                let none = ResolverConfig::from_parts(None, Vec::new(), Vec::new());
                let problem = format!(
                    "cannot use the system's name servers: {error}; only names in the hosts file are known"
                );
                (TokioResolver::builder_with_config(none, provider()), Some(problem))
            }
        };
        Ok((Self { inner: build(builder)? }, problem))
    }

    /// Uses the hosts file and these name servers.
    ///
    /// # Errors
    /// If the configuration is invalid.
    pub fn with_name_servers(servers: &[SocketAddr]) -> Result<Self, String> {
        let server = |at: &SocketAddr| {
            let mut server = NameServerConfig::udp_and_tcp(at.ip());
            server.connections.iter_mut().for_each(|connection| connection.port = at.port());
            server
        };
        let servers = servers.iter().map(server).collect();
        let config = ResolverConfig::from_parts(None, Vec::new(), servers);
        let provider = TokioRuntimeProvider::default();
        Ok(Self { inner: build(TokioResolver::builder_with_config(config, provider))? })
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

fn build(mut builder: ResolverBuilder<TokioRuntimeProvider>) -> Result<TokioResolver, String> {
    let options = builder.options_mut();
    options.use_hosts_file = ResolveHosts::Always;
    options.cache_size = CACHE_ENTRIES;
    options.positive_max_ttl = Some(CACHE_TIME);
    options.negative_max_ttl = Some(CACHE_TIME);
    builder.build().map_err(|error| format!("cannot resolve names: {error}"))
}
