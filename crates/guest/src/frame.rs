//! The frames in which a guest sends its results: a kind, a length of four bytes, least significant first, and contents.

use std::io::{self, Write};

/// The contents of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The guest has booted and waits for a job.
    Ready = b'r' as isize,
    /// What the program wrote to its standard output.
    Output = b'o' as isize,
    /// What the program wrote to its standard error.
    Error = b'e' as isize,
    /// The virtual time since the program began, in nanoseconds.
    Time = b't' as isize,
    /// A piece of the archive of the files that the program wrote.
    Files = b'f' as isize,
    /// The program's exit code, one byte; the last frame.
    Exit = b'x' as isize,
}

impl Kind {
    const ALL: [Self; 6] = [Self::Ready, Self::Output, Self::Error, Self::Time, Self::Files, Self::Exit];

    fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

const HEADER: usize = 5;

/// Writes one frame in one piece.
pub(crate) fn write(out: &mut impl Write, kind: Kind, contents: &[u8]) -> io::Result<()> {
    let mut frame = Vec::with_capacity(HEADER + contents.len());
    frame.push(kind as u8);
    frame.extend(u32::try_from(contents.len()).map_err(io::Error::other)?.to_le_bytes());
    frame.extend(contents);
    out.write_all(&frame)
}

/// Frames as they come, in pieces.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    bytes: Vec<u8>,
    taken: usize,
}

impl Frames {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.taken));
        self.bytes.extend(bytes);
    }

    /// The next frame that is complete. Bytes that begin no frame are skipped.
    pub(crate) fn next(&mut self) -> Option<(Kind, &[u8])> {
        loop {
            let rest = &self.bytes[self.taken..];
            let kind = Kind::of(*rest.first()?);
            let Some(kind) = kind else {
                self.taken += 1;
                continue;
            };
            let length = u32::from_le_bytes(rest.get(1..HEADER)?.try_into().ok()?) as usize;
            if rest.len() < HEADER + length {
                return None;
            }
            let begin = self.taken + HEADER;
            self.taken = begin + length;
            return Some((kind, &self.bytes[begin..begin + length]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_were_written_whatever_the_pieces() {
        let mut written = Vec::new();
        write(&mut written, Kind::Output, b"words").unwrap();
        write(&mut written, Kind::Time, &7_u64.to_le_bytes()).unwrap();
        write(&mut written, Kind::Exit, &[3]).unwrap();
        for piece in 1..written.len() {
            let (mut frames, mut read) = (Frames::default(), Vec::new());
            for bytes in written.chunks(piece) {
                frames.push(bytes);
                while let Some((kind, contents)) = frames.next() {
                    read.push((kind, contents.to_vec()));
                }
            }
            let expected = [
                (Kind::Output, b"words".to_vec()),
                (Kind::Time, 7_u64.to_le_bytes().to_vec()),
                (Kind::Exit, vec![3]),
            ];
            assert_eq!(read, expected, "in pieces of {piece}");
        }
    }
}
