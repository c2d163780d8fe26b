//! Parameters and error causes: type, length, value, padding (RFC 9260, 3.2.1 and 3.3.10).

use bytes::Bytes;

/// Length of a parameter header, bytes.
pub const HEADER: usize = 4;

/// Appends a parameter and its padding.
pub fn put(kind: u16, value: &[u8], out: &mut Vec<u8>) {
    let length = u16::try_from(HEADER + value.len()).expect("a parameter fits into its chunk");
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(value);
    pad(out, value.len());
}

/// Pads an item of `length` bytes to a multiple of 4.
pub fn pad(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(&[0; 3][..length.next_multiple_of(4) - length]);
}

/// End of the last parameter of the list that begins at `start`, without its padding. RFC 9260, 3.2: the
/// length of a chunk excludes that padding.
pub fn unpadded_end(out: &[u8], start: usize) -> usize {
    let (mut at, mut end) = (start, start);
    while let Some([_, _, a, b]) = out.get(at..).and_then(|rest| rest.first_chunk::<HEADER>()) {
        end = at + u16::from_be_bytes([*a, *b]) as usize;
        at = start + (end - start).next_multiple_of(4).max(at + HEADER - start);
    }
    end
}

/// One parameter of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    pub kind: u16,
    /// The value, without padding.
    pub value: Bytes,
    /// The complete parameter, without padding.
    pub whole: Bytes,
}

/// Iterator over the parameters of a list. A parameter with an invalid length yields an error and ends
/// the iteration.
pub struct Parameters {
    rest: Bytes,
}

/// The length of a parameter is less than its header or exceeds the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadLength;

impl Parameters {
    pub const fn of(list: Bytes) -> Self {
        Self { rest: list }
    }
}

impl Iterator for Parameters {
    type Item = Result<Parameter, BadLength>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let header = self.rest.first_chunk::<HEADER>().copied();
        let length = header.map_or(0, |[_, _, a, b]| u16::from_be_bytes([a, b]) as usize);
        let (Some([a, b, ..]), HEADER..) = (header, length) else {
            self.rest.clear();
            return Some(Err(BadLength));
        };
        if length > self.rest.len() {
            self.rest.clear();
            return Some(Err(BadLength));
        }
        let whole = self.rest.slice(..length);
        // RFC 9260, 3.2: the padding of the last parameter may be missing.
        self.rest = self.rest.slice(length.next_multiple_of(4).min(self.rest.len())..);
        let kind = u16::from_be_bytes([a, b]);
        Some(Ok(Parameter { kind, value: whole.slice(HEADER..), whole }))
    }
}

/// A value of exactly four bytes.
pub fn word(value: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(value.try_into().ok()?))
}
