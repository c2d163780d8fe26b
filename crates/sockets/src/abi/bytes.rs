//! Reads and writes the fields of C structures in the machine's byte order.

use crate::errno::{Errno, Result};

/// The bytes of a structure passed by a program.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    fn at<const N: usize>(self, offset: usize) -> Result<[u8; N]> {
        let bytes = self.0.get(offset..).and_then(|rest| rest.first_chunk());
        bytes.copied().ok_or(Errno(libc::EINVAL))
    }

    /// The byte at an offset.
    ///
    /// # Errors
    /// `EINVAL` if the structure is too short, as for all methods.
    pub fn u8(self, offset: usize) -> Result<u8> {
        self.at::<1>(offset).map(|bytes| bytes[0])
    }

    /// The 16-bit number at an offset.
    ///
    /// # Errors
    /// As [`Fields::u8`].
    pub fn u16(self, offset: usize) -> Result<u16> {
        self.at(offset).map(u16::from_ne_bytes)
    }

    /// The 32-bit number at an offset.
    ///
    /// # Errors
    /// As [`Fields::u8`].
    pub fn u32(self, offset: usize) -> Result<u32> {
        self.at(offset).map(u32::from_ne_bytes)
    }

    /// The signed 32-bit number at an offset.
    ///
    /// # Errors
    /// As [`Fields::u8`].
    pub fn i32(self, offset: usize) -> Result<i32> {
        self.at(offset).map(i32::from_ne_bytes)
    }

    /// The rest from an offset.
    ///
    /// # Errors
    /// As [`Fields::u8`].
    pub fn rest(self, offset: usize) -> Result<&'a [u8]> {
        self.0.get(offset..).ok_or(Errno(libc::EINVAL))
    }
}

/// A structure for the program. Fields and padding are appended in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image(Vec<u8>);

impl Image {
    /// An empty structure.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a byte.
    #[must_use]
    pub fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    /// Appends a 16-bit number.
    #[must_use]
    pub fn u16(mut self, value: u16) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    /// Appends a 32-bit number.
    #[must_use]
    pub fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    /// Appends a signed 32-bit number.
    #[must_use]
    pub fn i32(self, value: i32) -> Self {
        self.u32(value.cast_unsigned())
    }

    /// Appends bytes.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Appends zeros until the structure has this length in bytes.
    #[must_use]
    pub fn pad_to(mut self, length: usize) -> Self {
        self.0.resize(length.max(self.0.len()), 0);
        self
    }

    /// The bytes.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_again(a: u8, b: u16, c: u32, d: i32, rest: Vec<u8>) {
            let bytes = Image::new().u8(a).pad_to(2).u16(b).u32(c).i32(d).bytes(&rest).finish();
            let fields = Fields(&bytes);
            prop_assert_eq!((fields.u8(0), fields.u16(2), fields.u32(4)), (Ok(a), Ok(b), Ok(c)));
            prop_assert_eq!(fields.i32(8), Ok(d));
            prop_assert_eq!(fields.rest(12), Ok(&rest[..]));
            let length = bytes.len();
            prop_assert_eq!(fields.u32(length - 3), Err(Errno(libc::EINVAL)));
            prop_assert_eq!(fields.rest(length + 1), Err(Errno(libc::EINVAL)));
        }
    }
}
