//! Help for the case that a peer does not answer.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ropewalk_apps::access::default_key;
use ropewalk_base::date::utc_text;
use ropewalk_runtime::endpoint::ConnectError;

/// Tolerated age difference, because another machine may have written the files.
const TOLERANCE: Duration = Duration::from_secs(60);

/// Help for an association that could not be opened. `command` is the command that should run at
/// the peer.
pub fn help_for_connect(error: &ConnectError, command: &str) -> String {
    match error {
        ConnectError::OldDate(_) => {
            "`timedatectl set-ntp true`, or `date --set`, corrects the clock of a machine"
                .to_owned()
        }
        _ => help_for_silence(command),
    }
}

/// Help for a server that does not answer. `command` is the command that should run there.
pub fn help_for_silence(command: &str) -> String {
    let questions = format!(
        "is `{command}` running there, with this public key; are its address and UDP port right, and open in the \
         firewall; does it allow your key; if it requires a pre-shared key, is it the one of --psk-file; was the clock \
         of this machine set back?"
    );
    match wrong_date() {
        Some(wrong) => format!(
            "{wrong}, and peers refuse a key whose clock was set back: set the date. Else: {questions}"
        ),
        None => questions,
    }
}

/// Evidence that the date of this machine is wrong: it is before the date of the program or of the key. `None` if
/// there is no evidence.
pub fn wrong_date() -> Option<String> {
    let files = std::env::current_exe().ok().into_iter().chain(default_key());
    let changed = |file: PathBuf| Some((fs::metadata(&file).ok()?.modified().ok()?, file));
    compare(today(), files.filter_map(changed).max()?)
}

#[expect(clippy::disallowed_methods, reason = "the date itself is checked")]
fn today() -> SystemTime {
    SystemTime::now()
}

fn compare(now: SystemTime, (changed, file): (SystemTime, PathBuf)) -> Option<String> {
    let wrong = now.checked_add(TOLERANCE).is_some_and(|now| now < changed);
    wrong.then(|| {
        let file = file.display();
        format!(
            "the date of this machine is {}, before that of {file}, {}",
            shown(now),
            shown(changed)
        )
    })
}

fn shown(date: SystemTime) -> String {
    utc_text(date.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_before_that_of_a_file_is_wrong() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let compared = |now, changed| compare(at(now), (at(changed), PathBuf::from("f")));
        assert_eq!(compared(1_801_353_600, 1_801_353_600), None);
        assert_eq!(compared(1_801_353_600, 1_801_353_630), None, "written by another machine");
        let wrong = compared(1_801_353_600, 1_801_353_600 + 86_400 + 3_660);
        let expected = "the date of this machine is 2027-01-31 00:00:00 UTC, before that of f, 2027-02-01 01:01:00 UTC";
        assert_eq!(wrong.as_deref(), Some(expected));
    }
}
