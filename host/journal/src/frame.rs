//! Frames: a length and a checksum before bytes of one compressed stream. What must not enter: what
//! the bytes mean.
//!
//! A segment begins with eight bytes of magic and four of format. A frame begins with four numbers of
//! four bytes, little end first: compressed length, length, CRC-32 of the compressed bytes, CRC-32 of
//! the three numbers. All frames of a segment are one zstd stream, flushed at the end of each.

use std::fs::File;
use std::io::{self, Read, Write};
use std::mem;
use std::path::Path;

use zstd::stream::write::{Decoder, Encoder};

use crate::JournalError;

/// What a segment begins with.
const MAGIC: [u8; 8] = *b"WHITTLEJ";

/// The format of frames and lines that this version writes and reads.
pub(crate) const FORMAT: u32 = 1;

/// Magic and format.
const HEAD: usize = 12;

/// The four numbers before a frame.
const NUMBERS: usize = 16;

/// zstd's own default: lines of JSON shrink to a tenth at some 100 MB/s.
const LEVEL: i32 = 3;

/// 1 MiB of history: names and shapes recur within it, and it is all the memory a journal needs.
const WINDOW_LOG: u32 = 20;

/// Makes frames of one segment. What is written to it is compressed at once, so that of a line of megabytes no more than
/// its compressed bytes are held.
pub(crate) struct Framer {
    encoder: Encoder<'static, Vec<u8>>,
    /// Bytes since the last frame.
    length: usize,
}

impl Write for Framer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.encoder.write(bytes)?;
        self.length += taken;
        Ok(taken)
    }

    /// Nothing: frames end where [`Framer::frame`] says.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Framer {
    pub(crate) fn new() -> io::Result<Self> {
        let mut encoder = Encoder::new(Vec::new(), LEVEL)?;
        encoder.window_log(WINDOW_LOG)?;
        Ok(Self { encoder, length: 0 })
    }

    /// How much waits to be a frame.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// What a segment begins with.
    pub(crate) fn head() -> [u8; HEAD] {
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(&MAGIC);
        head[8..].copy_from_slice(&FORMAT.to_le_bytes());
        head
    }

    /// The frame of the bytes that were written since the last.
    pub(crate) fn frame(&mut self) -> io::Result<Vec<u8>> {
        self.encoder.flush()?;
        let (packed, length) = (mem::take(self.encoder.get_mut()), mem::take(&mut self.length));
        let number = |length: usize| u32::try_from(length).map_err(|_| io::Error::other("a frame of more than 4 GiB"));
        let numbers = [number(packed.len())?, number(length)?, crc32fast::hash(&packed)];
        let mut frame = Vec::with_capacity(NUMBERS + packed.len());
        numbers.iter().for_each(|number| frame.extend_from_slice(&number.to_le_bytes()));
        let sum = crc32fast::hash(&frame);
        frame.extend_from_slice(&sum.to_le_bytes());
        frame.extend_from_slice(&packed);
        Ok(frame)
    }
}

/// Reads the frames of one segment, from anything that reads.
pub(crate) struct Frames<R> {
    from: R,
    /// Bytes there are in all; what is added later is not looked at.
    size: u64,
    /// Where the next frame begins.
    pub(crate) offset: u64,
    decoder: Decoder<'static, Vec<u8>>,
    /// Whether the last frame is not whole.
    pub(crate) cut: bool,
}

impl Frames<io::BufReader<File>> {
    /// Of a segment's file.
    pub(crate) fn open(path: &Path) -> Result<Self, JournalError> {
        let reading = || JournalError::io("read", path);
        let file = File::open(path).map_err(reading())?;
        let size = file.metadata().map_err(reading())?.len();
        Self::new(io::BufReader::new(file), size, path)
    }
}

impl<R: Read> Frames<R> {
    fn new(mut from: R, size: u64, path: &Path) -> Result<Self, JournalError> {
        let reading = || JournalError::io("read", path);
        let decoder = Decoder::new(Vec::new()).map_err(reading())?;
        let mut head = [0; HEAD];
        let whole = size >= HEAD as u64;
        let there = &mut head[..usize::try_from(size).unwrap_or(HEAD).min(HEAD)];
        from.read_exact(there).map_err(reading())?;
        // A file that a power cut left without its first bytes is as empty as one that ends in them.
        let blank = there.iter().all(|byte| *byte == 0);
        let like = there.iter().zip(&MAGIC).all(|(byte, magic)| byte == magic);
        let mut frames = Self { from, size, offset: HEAD as u64, decoder, cut: !whole };
        if blank && frames.rest_is_blank().map_err(reading())? {
            frames.cut = true;
        } else if !like {
            return Err(JournalError::NoSegmentFile(path.to_owned()));
        }
        let found = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        if !frames.cut && found != FORMAT {
            return Err(JournalError::Format { path: path.to_owned(), found, known: FORMAT });
        }
        Ok(frames)
    }

    /// The bytes of the next frame; `None` at the end, and where the rest is cut.
    pub(crate) fn next(&mut self, path: &Path) -> Result<Option<Vec<u8>>, JournalError> {
        let left = self.size.saturating_sub(self.offset);
        if self.cut || left == 0 {
            return Ok(None);
        }
        if left < NUMBERS as u64 {
            self.cut = true;
            return Ok(None);
        }
        let reading = || JournalError::io("read", path);
        let mut numbers = [0; NUMBERS];
        self.from.read_exact(&mut numbers).map_err(reading())?;
        let number = |at: usize| u32::from_le_bytes([numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]]);
        if crc32fast::hash(&numbers[..12]) != number(12) {
            if numbers.iter().all(|byte| *byte == 0) && self.rest_is_blank().map_err(reading())? {
                self.cut = true;
                return Ok(None);
            }
            return Err(self.damaged(path, "the checksum of its length is wrong"));
        }
        let length = u64::from(number(0));
        if length > left - NUMBERS as u64 {
            self.cut = true;
            return Ok(None);
        }
        let mut packed = vec![0; number(0) as usize];
        self.from.read_exact(&mut packed).map_err(reading())?;
        if crc32fast::hash(&packed) != number(8) {
            return Err(self.damaged(path, "its checksum is wrong"));
        }
        let unpacked = self.decoder.write_all(&packed).and_then(|()| self.decoder.flush());
        unpacked.map_err(|error| self.damaged(path, &format!("it does not unpack: {error}")))?;
        let bytes = mem::take(self.decoder.get_mut());
        if bytes.len() != number(4) as usize {
            return Err(self.damaged(path, "it unpacks to another length"));
        }
        self.offset += NUMBERS as u64 + length;
        Ok(Some(bytes))
    }

    fn damaged(&self, path: &Path, what: &str) -> JournalError {
        JournalError::Damaged { path: path.to_owned(), offset: self.offset, what: what.to_owned() }
    }

    /// Whether only zeros follow: a file system may have given a file its length before its bytes.
    fn rest_is_blank(&mut self) -> io::Result<bool> {
        let mut rest = Vec::new();
        self.from.read_to_end(&mut rest)?;
        Ok(rest.iter().all(|byte| *byte == 0))
    }
}
