//! Control messages in a buffer of fixed size.

use libc::c_int;

use crate::abi::{Fields, number};

/// Size of the buffer, bytes.
const CONTROLS_ROOM: usize = 2048;
/// Length of `struct cmsghdr`, bytes.
const HEADER: usize = size_of::<libc::cmsghdr>();

/// Control messages of one call. They have no destructor, because the thread may be unwound while the call waits.
#[derive(Clone, Copy)]
pub struct ControlBuffer {
    bytes: [u8; CONTROLS_ROOM],
    length: usize,
}

impl ControlBuffer {
    /// An empty buffer.
    pub const NONE: Self = Self { bytes: [0; CONTROLS_ROOM], length: 0 };

    /// Adds a control message. Returns whether there was room.
    pub fn add(&mut self, kind: c_int, data: &[u8]) -> bool {
        let length = HEADER + data.len();
        let padded = length.next_multiple_of(size_of::<usize>());
        let Some(room) = self.bytes.get_mut(self.length..self.length + padded) else {
            return false;
        };
        let (header, rest) = room.split_at_mut(HEADER);
        header[..HEADER - 8].copy_from_slice(&length.to_ne_bytes());
        header[HEADER - 8..HEADER - 4].copy_from_slice(&number::SCTP.to_ne_bytes());
        header[HEADER - 4..].copy_from_slice(&kind.to_ne_bytes());
        rest[..data.len()].copy_from_slice(data);
        self.length += padded;
        true
    }

    /// The control messages.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Memory for control messages that a call receives.
    pub const fn room(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Sets the number of bytes that were received.
    pub fn set_length(&mut self, length: usize) {
        self.length = length.min(CONTROLS_ROOM);
    }

    /// The data of the first control message of this type.
    pub fn find(&self, kind: c_int) -> Option<&[u8]> {
        let mut rest = self.bytes();
        while rest.len() >= HEADER {
            let length = usize::from_ne_bytes(*rest.first_chunk()?);
            let fields = Fields(rest);
            let at = size_of::<usize>();
            if (fields.i32(at), fields.i32(at + 4)) == (Ok(number::SCTP), Ok(kind)) {
                return rest.get(HEADER..length);
            }
            rest = rest.get(length.max(HEADER).next_multiple_of(at)..)?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::number::control;

    #[test]
    fn a_control_message_is_found_among_others() {
        let (first, second) = ([1; 16], [2; 28]);
        let mut controls = ControlBuffer::NONE;
        assert!(controls.add(control::NXTINFO, &first));
        assert!(controls.add(control::RCVINFO, &second));
        assert!(!controls.add(control::SNDRCV, &[0; CONTROLS_ROOM]));
        assert_eq!(controls.find(control::NXTINFO), Some(&first[..]));
        assert_eq!(controls.find(control::RCVINFO), Some(&second[..]));
        assert_eq!(controls.find(control::SNDRCV), None);
    }
}
