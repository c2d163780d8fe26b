//! Finds the end of a chunked body (RFC 9112, 7.1).
//!
//! The bytes pass unchanged. Only the end matters: bytes after it are another request, perhaps for another server,
//! with credentials that the first server must not see.

/// Maximum length of a chunk size line with its extensions, and of the trailer section, bytes.
const LINE_LIMIT: u32 = 8 << 10;

/// The framing is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// State of a chunked body.
#[derive(Clone, Debug)]
pub struct ChunkedBody {
    state: State,
    /// Bytes of the current line or trailer section so far.
    line: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the hexadecimal digits of a chunk size. `None` before the first digit.
    Size(Option<u64>),
    /// After the digits of a chunk size, up to the line feed.
    Extension(u64),
    /// In the data of a chunk, with this number of bytes left.
    Data(u64),
    /// Before the CR, and before the LF, after a chunk's data.
    DataCr,
    DataLf,
    /// In the trailer section; whether the current line is empty so far.
    Trailer {
        blank: bool,
    },
    /// After the blank line that ends the body.
    Done,
}

impl ChunkedBody {
    pub const fn new() -> Self {
        Self { state: State::Size(None), line: 0 }
    }

    /// Whether the body has ended.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Processes bytes. Returns how many of them belong to the body.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn advance(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        let mut at = 0;
        while at < bytes.len() && !self.is_done() {
            if let State::Data(left) = self.state {
                let taken = left.min((bytes.len() - at) as u64);
                at += taken as usize;
                self.state = if taken == left { State::DataCr } else { State::Data(left - taken) };
                continue;
            }
            self.line += 1;
            if self.line > LINE_LIMIT {
                return Err(Malformed);
            }
            self.state = self.next(bytes[at])?;
            at += 1;
        }
        Ok(at)
    }

    /// The state after one byte of framing.
    fn next(&mut self, byte: u8) -> Result<State, Malformed> {
        match (self.state, byte) {
            (State::Size(value), digit) if digit.is_ascii_hexdigit() => {
                let digit = char::from(digit).to_digit(16).map_or(0, u64::from);
                let value = value.unwrap_or(0).checked_mul(16).ok_or(Malformed)?;
                Ok(State::Size(Some(value + digit)))
            }
            (State::Size(Some(size)), b'\r' | b';' | b' ' | b'\t') => Ok(State::Extension(size)),
            (State::Extension(size), b'\n') => {
                self.line = 0;
                Ok(if size == 0 { State::Trailer { blank: true } } else { State::Data(size) })
            }
            (State::Extension(size), _) => Ok(State::Extension(size)),
            (State::DataCr, b'\r') => Ok(State::DataLf),
            (State::DataLf, b'\n') => {
                self.line = 0;
                Ok(State::Size(None))
            }
            (State::Trailer { blank: true }, b'\n') => Ok(State::Done),
            (State::Trailer { .. }, b'\n') => Ok(State::Trailer { blank: true }),
            (State::Trailer { blank }, b'\r') => Ok(State::Trailer { blank }),
            (State::Trailer { .. }, _) => Ok(State::Trailer { blank: false }),
            _ => Err(Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_ends_where_it_ends_however_its_bytes_come() {
        for body in [
            "0\r\n\r\n",
            "5\r\nhello\r\n0\r\n\r\n",
            "A;name=\"value\"\r\n0123456789\r\n00\r\nDigest: x\r\nOther: y\r\n\r\n",
            "1 \r\n\n\r\n0\r\n\r\n",
        ] {
            let text = format!("{body}GET http://other.example/ HTTP/1.1\r\n\r\n");
            for step in [1, 2, 3, 7, text.len()] {
                let mut chunked = ChunkedBody::new();
                let mut length = 0;
                for bytes in text.as_bytes().chunks(step) {
                    length += chunked.advance(bytes).unwrap();
                }
                assert!(chunked.is_done());
                assert_eq!(length, body.len(), "{body:?} in steps of {step}");
            }
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        let long = format!("1;{}", "x".repeat(LINE_LIMIT as usize));
        for body in
            ["\r\n", "-1\r\n", "0x5\r\n", "5\nhello", "1\r\nab", "1\r\na\n0\r\n", "g\r\n", &long]
                .into_iter()
                .chain(["10000000000000000\r\n"])
        {
            assert_eq!(ChunkedBody::new().advance(body.as_bytes()), Err(Malformed), "{body:?}");
        }
    }
}
