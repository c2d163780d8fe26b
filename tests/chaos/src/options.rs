//! The command line.

use std::net::SocketAddr;
use std::path::Path;

use ropewalk_runtime::endpoint::{BindAddress, Options};
use ropewalk_runtime::seal::{Allowed, PublicKey, SecretKey};

use crate::Failure;

/// Options by name, in order. Lists are split into their values.
pub struct CommandOptions(Vec<(String, String)>);

impl CommandOptions {
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut all = Vec::new();
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} has no value"))?;
            all.extend(value.split(',').map(|part| (name.clone(), part.to_owned())));
        }
        Ok(Self(all))
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether an option is present.
    pub fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    fn one<'a>(&'a self, name: &'a str) -> Result<&'a str, Failure> {
        self.all(name).next().ok_or_else(|| format!("{name} is missing").into())
    }

    fn secret(&self) -> Result<SecretKey, Failure> {
        SecretKey::read_file(Path::new(self.one("--key")?))
            .map_err(|error| error.to_string().into())
    }

    pub fn addresses(&self, name: &str) -> Result<Vec<SocketAddr>, Failure> {
        Ok(self.all(name).map(str::parse).collect::<Result<_, _>>()?)
    }

    pub fn peer(&self) -> Result<PublicKey, Failure> {
        Ok(self.one("--peer")?.parse()?)
    }

    /// Options of an endpoint for `serve`.
    pub fn listening(&self) -> Result<Options, Failure> {
        let allowed = self.one("--allow")?.parse::<PublicKey>()?;
        let options = Options::listening(&self.addresses("--listen")?);
        Ok(options.sealed(self.secret()?, Allowed::Keys([allowed].into())))
    }

    /// Options of an endpoint for `run`: one socket per interface.
    pub fn connecting(&self) -> Result<Options, Failure> {
        let mut options = Options::connecting(&[]);
        let on = |name: &str| BindAddress {
            address: ([0, 0, 0, 0], 0).into(),
            interface: Some(name.to_owned()),
        };
        options.locals = self.all("--from").map(on).collect();
        Ok(options.sealed(self.secret()?, Allowed::Keys([self.peer()?].into())))
    }
}
