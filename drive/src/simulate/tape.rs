//! Recording of the layer's flash operations, for a clock that replays them later in another thread.
//!
//! A tape moves from one processor's cache to another's, so it is compact: a word of 32 bits holds an event, with its
//! kind in the upper bits and an offset in the others. Frontiers are filled page after page, so a position is recorded
//! only where it is not the page after the last one.

use crate::ftl::Media;
use crate::timing::Clock;

/// Bits of an offset. A drive has several superblocks and less than 2^32 pages, so none has more than 2^29.
const OFFSET_BITS: u32 = 29;
const OFFSET_MASK: u32 = (1 << OFFSET_BITS) - 1;

/// A host page, programmed at the next position.
const HOST: u32 = 0;
/// A copy of the page at the offset, programmed at the next position.
const COPIED: u32 = 1;
/// An empty page, programmed at the next position.
const PADDED: u32 = 2;
/// An erase of a superblock.
const ERASED: u32 = 3;
/// A read of the old page at the offset, for a partial write.
const FETCHED: u32 = 4;
/// A read of the page at the offset.
const READ: u32 = 5;
/// A read of an unmapped page.
const READ_NOTHING: u32 = 6;
/// New position: the frontier is in this word in place of an offset, the offset is the next word.
const SEEK: u32 = 7;

/// Position of the next page, unless a [`SEEK`] changes it.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Position {
    frontier: u32,
    offset: u32,
}

/// Records flash operations. The host's operations are not recorded: the reader of a tape has them already.
#[derive(Default)]
pub(super) struct Tape {
    words: Vec<u32>,
    position: Position,
}

impl Tape {
    /// Returns the number of words on the tape.
    pub(super) fn end(&self) -> u32 {
        self.words.len() as u32
    }

    /// Empties the tape; keeps its memory.
    pub(super) fn clear(&mut self) {
        self.words.clear();
        self.position = Position::default();
    }

    #[inline(always)]
    fn put(&mut self, kind: u32, offset: u32) {
        self.words.push(kind << OFFSET_BITS | offset);
    }

    #[inline(always)]
    fn seek(&mut self, frontier: usize, offset: u32) {
        let position = Position { frontier: frontier as u32, offset };
        if self.position != position {
            self.put(SEEK, position.frontier);
            self.words.push(offset);
        }
        self.position = Position { offset: offset + 1, ..position };
    }
}

impl Media for Tape {
    #[inline(always)]
    fn host_page(&mut self, frontier: usize, offset: u32) {
        self.seek(frontier, offset);
        self.put(HOST, 0);
    }

    #[inline(always)]
    fn copied_page(&mut self, frontier: usize, offset: u32, source_offset: u32) {
        self.seek(frontier, offset);
        self.put(COPIED, source_offset);
    }

    fn padded_page(&mut self, frontier: usize, offset: u32) {
        self.seek(frontier, offset);
        self.put(PADDED, 0);
    }

    fn erased(&mut self) {
        self.put(ERASED, 0);
    }
}

impl Clock for Tape {
    fn read(&mut self, _due_nanoseconds: u64, offset: Option<u32>, _size_bytes: u64) {
        match offset {
            Some(offset) => self.put(READ, offset),
            None => self.put(READ_NOTHING, 0),
        }
    }

    fn fetch(&mut self, offset: u32) {
        self.put(FETCHED, offset);
    }
}

/// Replays a tape from its beginning.
pub(super) struct Player<'a> {
    tape: &'a Tape,
    next: usize,
    position: Position,
    page_bytes: u64,
}

impl<'a> Player<'a> {
    /// Creates a player for a drive whose pages have `page_bytes` bytes.
    pub(super) fn new(tape: &'a Tape, page_bytes: u64) -> Self {
        Self { tape, next: 0, position: Position::default(), page_bytes }
    }

    /// Replays the tape on the clock up to `end`, or up to the first padding if `stop_at_padding`. The events belong to
    /// an operation that was due at `due_nanoseconds`.
    #[inline(always)]
    pub(super) fn play<C: Clock>(&mut self, end: u32, stop_at_padding: bool, clock: &mut C, due_nanoseconds: u64) {
        while self.next < end as usize {
            let word = self.tape.words[self.next];
            let (kind, operand) = (word >> OFFSET_BITS, word & OFFSET_MASK);
            let Position { frontier, offset } = self.position;
            match kind {
                HOST => clock.host_page(frontier as usize, offset),
                COPIED => clock.copied_page(frontier as usize, offset, operand),
                PADDED if stop_at_padding => return,
                PADDED => clock.padded_page(frontier as usize, offset),
                SEEK => {
                    self.next += 1;
                    self.position = Position { frontier: operand, offset: self.tape.words[self.next] };
                }
                ERASED => clock.erased(),
                FETCHED => clock.fetch(operand),
                READ => clock.read(due_nanoseconds, Some(operand), self.page_bytes),
                _ => clock.read(due_nanoseconds, None, self.page_bytes),
            }
            self.position.offset += u32::from(kind <= PADDED);
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps the flash operations, for comparison.
    #[derive(Default, PartialEq, Debug)]
    struct RecordedMedia(Vec<(&'static str, usize, u32, Option<u32>)>);

    impl Media for RecordedMedia {
        fn host_page(&mut self, frontier: usize, offset: u32) {
            self.0.push(("host", frontier, offset, None));
        }
        fn copied_page(&mut self, frontier: usize, offset: u32, source_offset: u32) {
            self.0.push(("copied", frontier, offset, Some(source_offset)));
        }
        fn padded_page(&mut self, frontier: usize, offset: u32) {
            self.0.push(("padded", frontier, offset, None));
        }
        fn erased(&mut self) {
            self.0.push(("erased", 0, 0, None));
        }
    }

    impl Clock for RecordedMedia {
        fn read(&mut self, due_nanoseconds: u64, offset: Option<u32>, size_bytes: u64) {
            self.0.push(("read", due_nanoseconds as usize, size_bytes as u32, offset));
        }
        fn fetch(&mut self, offset: u32) {
            self.0.push(("fetch", 0, offset, None));
        }
    }

    fn say<C: Clock>(clock: &mut C) {
        clock.host_page(0, 7);
        clock.host_page(0, 8);
        clock.copied_page(256, 0, OFFSET_MASK);
        clock.host_page(0, 9);
        clock.erased();
        clock.fetch(5);
        clock.read(3, Some(0), 4096);
        clock.read(3, None, 4096);
        clock.padded_page(0, 10);
        clock.padded_page(0, OFFSET_MASK);
    }

    #[test]
    fn what_is_played_is_what_was_said() {
        let (mut tape, mut said, mut heard) = (Tape::default(), RecordedMedia::default(), RecordedMedia::default());
        say(&mut tape);
        say(&mut said);
        let mut player = Player::new(&tape, 4096);
        player.play(tape.end(), true, &mut heard, 3);
        assert_eq!(heard.0, said.0[..8]);
        player.play(tape.end(), false, &mut heard, 3);
        assert_eq!(heard, said);
    }
}
