//! Records that are compressed by gzip (RFC 1952), recognised by their first bytes, not by their names.

use std::io::{self, BufRead, ErrorKind, Read};

use flate2::bufread::MultiGzDecoder;

/// First bytes of a gzip member with DEFLATE (RFC 1952, 2.3.1).
const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];

/// A file whose content is decompressed while it is read, if it is compressed. Its memory does not depend on its size.
#[derive(Debug)]
pub struct Plain<R> {
    content: Content<R>,
    damage: Option<Damage>,
}

/// What is wrong with compressed content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It ends too early. What precedes the end was read.
    Cut,
    /// It is not what its writer has compressed.
    Invalid,
}

#[derive(Debug)]
enum Content<R> {
    Stored(R),
    Gzip(Box<MultiGzDecoder<R>>),
}

impl<R: BufRead> Plain<R> {
    /// Reads this file, which is at its beginning.
    ///
    /// # Errors
    /// Those of the file.
    pub fn new(mut file: R) -> io::Result<Self> {
        let content = if file.fill_buf()?.starts_with(&MAGIC) {
            Content::Gzip(Box::new(MultiGzDecoder::new(file)))
        } else {
            Content::Stored(file)
        };
        Ok(Self { content, damage: None })
    }

    /// What was found to be wrong so far.
    pub const fn damage(&self) -> Option<Damage> {
        self.damage
    }
}

impl<R: BufRead> Read for Plain<R> {
    /// Content that is cut ends where its last readable byte is.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let decoder = match &mut self.content {
            Content::Stored(file) => return file.read(into),
            Content::Gzip(decoder) => decoder,
        };
        decoder.read(into).or_else(|error| match error.kind() {
            ErrorKind::UnexpectedEof => {
                self.damage = Some(Damage::Cut);
                Ok(0)
            }
            ErrorKind::InvalidData | ErrorKind::InvalidInput => {
                self.damage = Some(Damage::Invalid);
                Err(io::Error::new(error.kind(), format!("invalid gzip data: {error}")))
            }
            _ => Err(error),
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// What gzip makes of this content.
    pub fn compressed(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content).expect("in memory");
        encoder.finish().expect("in memory")
    }

    fn read(file: &[u8]) -> (io::Result<Vec<u8>>, Option<Damage>) {
        let mut plain = Plain::new(file).expect("in memory");
        let mut content = Vec::new();
        let done = plain.read_to_end(&mut content);
        (done.map(|_| content), plain.damage())
    }

    #[test]
    fn a_file_has_the_same_content_with_and_without_compression() {
        let content: Vec<u8> =
            (0..100_000_u32).flat_map(|i| i.wrapping_mul(i).to_le_bytes()).collect();
        let (first, second) = content.split_at(70_000);
        let members = [compressed(first), compressed(second)].concat();
        for file in [content.clone(), compressed(&content), members] {
            let (found, damage) = read(&file);
            assert!(found.expect("readable") == content && damage.is_none());
        }
        assert_eq!(read(b"\x1f").0.expect("readable"), b"\x1f");
    }

    #[test]
    fn compressed_content_that_is_cut_is_read_up_to_the_cut() {
        let content: Vec<u8> =
            (0..9000_u32).flat_map(|i| i.wrapping_mul(i).to_le_bytes()).collect();
        let file = compressed(&content);
        for length in 3..file.len() {
            let (found, damage) = read(&file[..length]);
            assert!(content.starts_with(&found.expect("readable")), "{length}");
            assert_eq!(damage, Some(Damage::Cut), "{length}");
        }
        let half = read(&file[..file.len() / 2]).0.expect("readable");
        assert!(half.len() > content.len() / 3, "{}", half.len());
    }

    #[test]
    fn invalid_compressed_content_is_an_error() {
        let content = vec![7; 5000];
        let mut file = compressed(&content);
        let checksum = file.len() - 8;
        file[checksum] ^= 1;
        let (found, damage) = read(&file);
        assert!(found.is_err() && damage == Some(Damage::Invalid));
    }
}
