//! Extensions of SCTP that a command offers to its peer.

use clap::Args;
use clap::builder::PossibleValuesParser;
use ropewalk_apps::extensions::{Extension, chunk_types};
use ropewalk_runtime::endpoint::{Association, Transport};

use crate::console::Console;
use crate::failure::Failure;

/// The extensions to offer.
#[derive(Clone, Debug, Default, Args)]
pub struct ExtensionArgs {
    /// Offer an extension of SCTP, which is used if the peer offers it as well; several with commas. The last two need
    /// --plain
    #[arg(long, value_name = "NAME", value_delimiter = ',',
        value_parser = PossibleValuesParser::new(Extension::NAMES.map(|(name, _)| name)))]
    extension: Vec<String>,
    /// With `--extension authentication`, chunks that the peer must authenticate, such as data,sack
    #[arg(long, value_name = "CHUNK", value_delimiter = ',', requires = "extension")]
    authenticate: Vec<String>,
}

impl ExtensionArgs {
    /// Offers the extensions to peers. `plain`: whether associations are in the clear.
    ///
    /// # Errors
    /// An extension makes no sense in a sealed association, or a chunk is unknown or cannot be authenticated.
    pub fn offer(&self, plain: bool, transport: &mut Transport) -> Result<(), Failure> {
        for extension in self.chosen() {
            if let Some(why) = extension.not_sealed().filter(|_| !plain) {
                let message = format!("--extension {} needs --plain: {why}", extension.name());
                return Err(Failure::input(message, "leave it out, or give --plain on both sides"));
            }
            extension.offer(transport);
        }
        if self.authenticate.is_empty() {
            return Ok(());
        }
        if !transport.authentication && !transport.address_reconfiguration {
            return Err(Failure::input(
                "--authenticate: chunks are not authenticated",
                "add --extension authentication on both sides",
            ));
        }
        let names = self.authenticate.iter().map(String::as_str);
        let types = chunk_types(names).map_err(|error| {
            Failure::input(format!("--authenticate: {error}"), "such as --authenticate data,sack")
        })?;
        transport.authenticated_chunks = types;
        Ok(())
    }

    /// The options of a peer that offers the same, with a space before them; empty if there are none.
    pub fn options(&self) -> String {
        let option = |name: &str, values: &[String]| match values {
            [] => String::new(),
            _ => format!(" {name} {}", values.join(",")),
        };
        option("--extension", &self.extension) + &option("--authenticate", &self.authenticate)
    }

    fn chosen(&self) -> impl Iterator<Item = Extension> {
        self.extension.iter().filter_map(|name| Extension::from_name(name).ok())
    }

    /// Says which of the extensions are used with this peer.
    pub fn tell(&self, association: &Association, console: Console) {
        let (used, others): (Vec<_>, Vec<_>) =
            self.chosen().partition(|extension| extension.is_used(association));
        let names =
            |all: &[Extension]| all.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ");
        if !used.is_empty() {
            console.note(format_args!("extensions in use: {}", names(&used)));
        }
        if !others.is_empty() {
            console.note(format_args!(
                "not in use, because the peer does not offer it: {}",
                names(&others)
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        extensions: ExtensionArgs,
    }

    fn offered(plain: bool, words: &[&str]) -> Result<Transport, String> {
        let line = Line::try_parse_from([&["bench"], words].concat());
        let line = line.map_err(|error| error.to_string())?;
        let mut transport = Transport::default();
        let offer = line.extensions.offer(plain, &mut transport);
        offer.map(|()| transport).map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn extensions_are_offered_one_by_one_or_together() {
        for words in [
            &["--extension", "nr-sack,interleaving"][..],
            &["--extension", "nr-sack", "--extension", "interleaving"],
        ] {
            for plain in [false, true] {
                let transport = offered(plain, words).expect("valid");
                let expected =
                    Transport { nr_sack: true, interleaving: true, ..Transport::default() };
                assert_eq!(transport, expected);
            }
        }
        assert_eq!(offered(false, &[]), Ok(Transport::default()));
    }

    #[test]
    fn the_options_of_the_peer_read_back_to_the_same() {
        let words = ["bench", "--extension", "nr-sack", "--extension=authentication"];
        let line = Line::parse_from([&words[..], &["--authenticate", "data,sack"]].concat());
        let options = line.extensions.options();
        assert_eq!(options, " --extension nr-sack,authentication --authenticate data,sack");
        let again = Line::parse_from(["bench"].into_iter().chain(options.split_whitespace()));
        assert_eq!(again.extensions.options(), options);
        assert_eq!(ExtensionArgs::default().options(), "");
    }

    #[test]
    fn chunks_are_authenticated_in_the_clear_only() {
        let words = ["--extension", "authentication", "--authenticate", "data,sack"];
        let transport = offered(true, &words).expect("valid");
        assert!(transport.authentication && transport.authenticated_chunks.has(0));
        for (plain, words, part) in [
            (false, &words[..], "needs --plain: a seal"),
            (false, &["--extension", "address-reconfiguration"], "follows addresses without it"),
            (true, &["--extension", "nr-sack", "--authenticate", "data"], "add --extension"),
            (true, &["--extension", "authentication", "--authenticate", "init"], "`init` is no"),
            (true, &["--authenticate", "data"], "--extension"),
            (true, &["--extension", "asconf"], "address-reconfiguration"),
        ] {
            let error = offered(plain, words).expect_err(part);
            assert!(error.contains(part), "{words:?}: {error}");
        }
    }
}
