//! What the fuzz targets have in common.

pub mod peers;
pub mod rules;
pub mod transfer;

/// The bytes of the fuzzer, taken apart as a list of things to do. Numbers are zero once they run out.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// Whether nothing is left.
    pub const fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub const fn byte(&mut self) -> u8 {
        match self.0 {
            [first, rest @ ..] => {
                self.0 = rest;
                *first
            }
            [] => 0,
        }
    }

    pub fn number(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// So many bytes, or all that are left.
    pub fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    /// A length of at most 65535, and so many bytes.
    pub fn block(&mut self) -> &'a [u8] {
        let length = self.number();
        self.bytes(length.into())
    }

    /// Changes one byte of `bytes`; whether they are others now.
    pub fn spoil(&mut self, bytes: &mut [u8]) -> bool {
        let (at, by) = (self.number() as usize, self.byte());
        match bytes.get_mut(at) {
            Some(byte) => *byte ^= by,
            None => return false,
        }
        by != 0
    }
}
