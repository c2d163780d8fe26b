//! The code that pairs two ends, and the invitation that carries it with addresses.

use std::fmt;
use std::str::FromStr;

/// The characters of a code: digits and capital letters without those that look like others (0, 1, I, L, O). Their
/// number is prime, which the check character needs.
const ALPHABET: &[u8; 31] = b"23456789ABCDEFGHJKMNPQRSTUVWXYZ";
/// Random characters, 34 bits. A wrong code ends the pairing, so each code can be guessed only once.
const RANDOM: usize = 7;
/// Characters of a code: the random ones and the check character.
const LEN: usize = RANDOM + 1;
/// Characters of a group.
const GROUP: usize = 4;
/// The scheme of an invitation.
const SCHEME: &str = "ropewalk:";
/// Maximum number of addresses of an invitation.
const ADDRESSES_LIMIT: usize = 8;

/// A code: eight characters, shown as two groups of four. The last character is a check character, which detects a
/// typing error before it uses up the code.
#[derive(Clone, PartialEq, Eq)]
pub struct Code([u8; LEN]);

/// Why a text is not a code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// The code does not have eight characters; its length without blanks and hyphens.
    #[error("a code has {LEN} characters, and this has {0}")]
    Length(usize),
    /// The text has a character that does not occur in codes.
    #[error("no code has the character {0:?}")]
    Character(char),
    /// The check character does not match: a character is wrong, or two are exchanged.
    #[error("a character is mistyped: the check character differs")]
    Check,
    /// The system provides no random numbers.
    #[error("the system provides no random numbers")]
    NoRandomness,
}

/// The information that the peer needs: the code, and addresses of the end that shows it, if known.
#[derive(Clone, PartialEq, Eq)]
pub struct Invitation {
    /// The code.
    pub code: Code,
    /// Addresses as text: `192.0.2.7`, `192.0.2.7:9000`, a name.
    pub addresses: Vec<String>,
}

/// Why a text is not an invitation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvitationError {
    /// The code is invalid.
    #[error("{0}")]
    Code(CodeError),
    /// An address is empty, or has a character that does not occur in addresses.
    #[error("{0:?} is not an address")]
    Address(String),
    /// There are more than eight addresses.
    #[error("{0} addresses; an invitation has at most {ADDRESSES_LIMIT}")]
    TooMany(usize),
}

impl Code {
    /// Draws a code.
    ///
    /// # Errors
    /// [`CodeError::NoRandomness`].
    pub fn generate() -> Result<Self, CodeError> {
        let mut code = [0; LEN];
        let mut drawn = 0;
        while drawn < RANDOM {
            let mut byte = [0];
            getrandom::fill(&mut byte).map_err(|_| CodeError::NoRandomness)?;
            // The largest multiple of 31 in a byte: larger values would favour the first characters.
            if byte[0] < 248 {
                code[drawn] = ALPHABET[usize::from(byte[0]) % ALPHABET.len()];
                drawn += 1;
            }
        }
        code[RANDOM] = check(&code);
        Ok(Self(code))
    }

    /// The code without a hyphen, as both ends enter it into the exchange.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("letters and digits")
    }
}

/// The character that makes the weighted sum of all positions zero modulo 31. Weights 1 to 8 differ, and 31 is prime:
/// each wrong character and each exchange of two characters changes the sum.
fn check(code: &[u8; LEN]) -> u8 {
    let sum: usize = (0..RANDOM).map(|place| (place + 1) * value(code[place])).sum();
    let check =
        (0..ALPHABET.len()).find(|check| (sum + LEN * check).is_multiple_of(ALPHABET.len()));
    ALPHABET[check.expect("8 has an inverse modulo 31")]
}

fn value(character: u8) -> usize {
    ALPHABET.iter().position(|known| *known == character).unwrap_or_default()
}

impl FromStr for Code {
    type Err = CodeError;

    fn from_str(text: &str) -> Result<Self, CodeError> {
        let characters = || text.chars().filter(|c| !c.is_whitespace() && *c != '-');
        let mut code = [0; LEN];
        for (place, character) in code.iter_mut().zip(characters()) {
            let upper = character.to_ascii_uppercase();
            let known = u8::try_from(upper).ok().filter(|byte| ALPHABET.contains(byte));
            *place = known.ok_or(CodeError::Character(character))?;
        }
        let length = characters().count();
        if length != LEN {
            return Err(CodeError::Length(length));
        }
        if check(&code) == code[RANDOM] { Ok(Self(code)) } else { Err(CodeError::Check) }
    }
}

impl FromStr for Invitation {
    type Err = InvitationError;

    /// Parses `CODE`, `CODE@ADDRESS,ADDRESS` or `ropewalk:CODE@ADDRESS`.
    fn from_str(text: &str) -> Result<Self, InvitationError> {
        let text = text.trim();
        let text = text.strip_prefix(SCHEME).unwrap_or(text);
        let (code, addresses) = match text.split_once('@') {
            None => (text, Vec::new()),
            Some((code, rest)) => (code, rest.split(',').map(str::to_owned).collect()),
        };
        let code = code.parse().map_err(InvitationError::Code)?;
        if addresses.len() > ADDRESSES_LIMIT {
            return Err(InvitationError::TooMany(addresses.len()));
        }
        let good = |c: char| c.is_ascii_alphanumeric() || "-_.:[]".contains(c);
        match addresses.iter().find(|one| one.is_empty() || !one.chars().all(good)) {
            Some(wrong) => Err(InvitationError::Address(wrong.clone())),
            None => Ok(Self { code, addresses }),
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, second) = self.as_str().split_at(GROUP);
        write!(f, "{first}-{second}")
    }
}

impl fmt::Display for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.code)?;
        if self.addresses.is_empty() { Ok(()) } else { write!(f, "@{}", self.addresses.join(",")) }
    }
}

/// The code is a secret while it is valid.
impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code(hidden)")
    }
}

impl fmt::Debug for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invitation").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drawn() -> Code {
        Code::generate().expect("random numbers")
    }

    #[test]
    fn a_code_is_read_in_every_notation() {
        for _ in 0..100 {
            let code = drawn();
            let shown = code.to_string();
            assert_eq!(shown.len(), LEN + 1);
            for text in [&shown, &shown.to_lowercase(), &shown.replace('-', " "), code.as_str()] {
                assert_eq!(text.parse::<Code>(), Ok(code.clone()), "{text}");
            }
        }
    }

    #[test]
    fn one_wrong_character_and_two_exchanged_ones_are_noticed() {
        let code = drawn();
        for place in 0..LEN {
            for other in ALPHABET {
                let mut wrong = code.0;
                wrong[place] = *other;
                let text = std::str::from_utf8(&wrong).expect("ASCII");
                assert_eq!(text.parse::<Code>().is_ok(), wrong == code.0, "{text}");
            }
            for second in 0..LEN {
                let mut wrong = code.0;
                wrong.swap(place, second);
                let text = std::str::from_utf8(&wrong).expect("ASCII");
                assert_eq!(text.parse::<Code>().is_ok(), wrong == code.0, "{text}");
            }
        }
    }

    #[test]
    fn what_is_no_code_is_refused_with_the_reason() {
        for (text, expected) in [
            ("", CodeError::Length(0)),
            ("ABCD-EF", CodeError::Length(6)),
            ("ABCD-EFGH-2", CodeError::Length(9)),
            ("ABCD-EFG0", CodeError::Character('0')),
            ("ABCD-EFGé", CodeError::Character('é')),
            ("2222-2223", CodeError::Check),
        ] {
            assert_eq!(text.parse::<Code>(), Err(expected), "{text}");
        }
    }

    #[test]
    fn an_invitation_survives_its_text() {
        let code = drawn();
        for addresses in [vec![], vec!["192.0.2.7"], vec!["[2001:db8::1]:9000", "host.example"]] {
            let addresses: Vec<_> = addresses.into_iter().map(str::to_owned).collect();
            let invitation = Invitation { code: code.clone(), addresses };
            let text = invitation.to_string();
            assert_eq!(text.parse::<Invitation>().as_ref(), Ok(&invitation), "{text}");
            let bare = text.strip_prefix(SCHEME).expect("the scheme");
            assert_eq!(bare.parse::<Invitation>(), Ok(invitation), "{bare}");
        }
        for (text, expected) in [
            (format!("{code}@"), InvitationError::Address(String::new())),
            (format!("{code}@a b"), InvitationError::Address("a b".to_owned())),
            (format!("{code}@{}", ["a"; 9].join(",")), InvitationError::TooMany(9)),
            ("x@a".to_owned(), InvitationError::Code(CodeError::Length(1))),
        ] {
            assert_eq!(text.parse::<Invitation>(), Err(expected), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_stops_the_parser_and_what_it_accepts_is_short(text in ".{0,200}") {
            if let Ok(invitation) = text.parse::<Invitation>() {
                prop_assert!(invitation.addresses.len() <= ADDRESSES_LIMIT);
                prop_assert_eq!(invitation.to_string().parse::<Invitation>(), Ok(invitation));
            }
        }
    }
}
