//! Extensions of SCTP that a command offers to its peer.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use ropewalk_apps::extensions::{Extension, all_chunk_types, chunk_types};
use ropewalk_apps::secrets;
use ropewalk_runtime::endpoint::{Association, ChunkTypes, Observer, Transport};

use crate::console::Console;
use crate::failure::Failure;

/// Type of COOKIE ECHO (RFC 9260, 3.2).
const COOKIE_ECHO: u8 = 10;
/// How often it is looked whether packets were discarded.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Interval of notes about packets that were discarded.
const NOTE_INTERVAL: Duration = Duration::from_secs(60);

/// The extensions to offer.
#[derive(Clone, Debug, Default, Args)]
pub struct ExtensionArgs {
    /// Offer an extension of SCTP, which is used if the peer offers it as well; several with commas. The last two need
    /// --plain
    #[arg(long, value_name = "NAME", value_delimiter = ',',
        value_parser = PossibleValuesParser::new(Extension::NAMES.map(|(name, _)| name)))]
    extension: Vec<String>,
    /// With `--extension authentication` or --secrets-file, chunks that the peer must authenticate, such as data,sack;
    /// with --secrets-file, all of them by default
    #[arg(long, value_name = "CHUNK", value_delimiter = ',')]
    authenticate: Vec<String>,
    /// With --plain, authenticate chunks by the secrets in this file; both ends need it (`ropewalk keygen --secrets FILE`
    /// creates one)
    #[arg(long, value_name = "FILE")]
    secrets_file: Option<PathBuf>,
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
        self.read_secrets(plain, transport)?;
        if self.authenticate.is_empty() {
            return Ok(());
        }
        if !transport.authentication && !transport.address_reconfiguration {
            return Err(Failure::input(
                "--authenticate: chunks are not authenticated",
                "add --extension authentication or --secrets-file FILE on both sides",
            ));
        }
        let names = self.authenticate.iter().map(String::as_str);
        let types = chunk_types(names).map_err(|error| {
            Failure::input(format!("--authenticate: {error}"), "such as --authenticate data,sack")
        })?;
        transport.authenticated_chunks = match self.secrets_file {
            Some(_) => types.and(ChunkTypes::of(&[COOKIE_ECHO])),
            None => types,
        };
        Ok(())
    }

    /// Reads the file with secrets, if one is given. Peers without these secrets are then refused: their handshake has to
    /// be authenticated, too.
    fn read_secrets(&self, plain: bool, transport: &mut Transport) -> Result<(), Failure> {
        let Some(file) = &self.secrets_file else { return Ok(()) };
        if !plain {
            return Err(Failure::input(
                "--secrets-file needs --plain: a seal authenticates whole packets",
                "leave it out, or give --plain on both sides; --psk-file adds a secret to a seal",
            ));
        }
        let keys = secrets::read_file(file);
        transport.shared_keys = keys.map_err(|error| Failure::input(&error, error.help()))?;
        transport.authentication = true;
        transport.authenticated_chunks = all_chunk_types();
        Ok(())
    }

    /// A question to add to the hint for a peer that does not answer, with a space before it; empty without secrets.
    pub fn question(&self) -> &'static str {
        match self.secrets_file {
            Some(_) => {
                " Does it have the same secrets (--secrets-file)? One of another secret gets no answer."
            }
            None => "",
        }
    }

    /// Tells the user when packets are discarded because they lack a valid code. Needs a tokio runtime.
    pub fn watch(&self, observer: &Observer, console: Console) {
        if self.secrets_file.is_none() {
            return;
        }
        let observer = observer.clone();
        tokio::spawn(async move {
            let mut told = 0;
            loop {
                let count =
                    observer.snapshots().iter().map(|one| one.counters.unauthenticated).sum();
                if count > told {
                    told = count;
                    console.note(format_args!(
                        "packets without a valid code were discarded: does the peer have the same secrets \
                         (--secrets-file)? One that was restarted sends such packets, too ({count} so far)"
                    ));
                    tokio::time::sleep(NOTE_INTERVAL).await;
                }
                tokio::time::sleep(LOOK_INTERVAL).await;
            }
        });
    }

    /// The options of a peer that offers the same, with a space before them; empty if there are none.
    pub fn options(&self) -> String {
        let option = |name: &str, values: &[String]| match values {
            [] => String::new(),
            _ => format!(" {name} {}", values.join(",")),
        };
        let secrets = self.secrets_file.as_ref().map(|file| file.display().to_string());
        option("--extension", &self.extension)
            + &option("--authenticate", &self.authenticate)
            + &option("--secrets-file", &secrets.into_iter().collect::<Vec<_>>())
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
    fn secrets_turn_authentication_on_and_need_it_of_the_handshake() {
        let file = std::env::temp_dir().join(format!("ropewalk-secrets-{}", std::process::id()));
        let _ = std::fs::remove_file(&file);
        ropewalk_runtime::seal::write_new_secret("4 hex:", &file).expect("a new file");
        let name = file.to_str().expect("text");
        let all = offered(true, &["--secrets-file", name]).expect("valid");
        assert!(all.authentication && all.shared_keys.active() == 4);
        assert_eq!(all.authenticated_chunks, all_chunk_types());
        let some = offered(true, &["--secrets-file", name, "--authenticate", "data,sack"]);
        assert_eq!(some.expect("valid").authenticated_chunks, ChunkTypes::of(&[0, 3, COOKIE_ECHO]));
        let error = offered(false, &["--secrets-file", name]).expect_err("sealed");
        assert!(error.contains("needs --plain") && error.contains("--psk-file"), "{error}");
        let line = Line::parse_from(["bench", "--secrets-file", name]);
        assert_eq!(line.extensions.options(), format!(" --secrets-file {name}"));
        assert!(line.extensions.question().contains("--secrets-file"));
        let _ = std::fs::remove_file(&file);
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
