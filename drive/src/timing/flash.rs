//! Timing model of the flash: busy dies, channel buses, and the write buffer that hides both from writes.

use crate::ftl::Media;
use crate::random::{Purpose, Random};

/// Durations of flash operations, and the drive's channels, dies and planes.
#[derive(Clone, Debug)]
pub struct FlashTimes {
    /// Channels, each with its own bus.
    pub channels: u32,
    /// Dies per channel.
    pub dies_per_channel: u32,
    /// Planes per die, a power of two, all programmed by one operation.
    pub planes: u32,
    /// Pages per superblock.
    pub pages_per_block: u32,
    /// Superblocks open at the same time.
    pub frontiers: usize,
    /// Time to read a page from the cells.
    pub read_nanoseconds: u64,
    /// Mean time to program one page on every plane of a die.
    pub program_nanoseconds: u64,
    /// Variation of the program time to either side, as a share of it, uniformly distributed.
    pub program_spread: f64,
    /// Time to erase a superblock; all dies erase at once.
    pub erase_nanoseconds: u64,
    /// Time to transfer one page over a channel's bus.
    pub transfer_nanoseconds: u64,
    /// Longest wait of a read for a program or erase in progress; `None` if the drive cannot suspend them.
    pub suspend_nanoseconds: Option<u64>,
    /// Capacity of the write buffer in pages.
    pub buffer_pages: u64,
    /// Fixed time per request beside the flash: command, firmware, completion.
    pub overhead_nanoseconds: u64,
    /// Bandwidth between host and write buffer, in bytes per second.
    pub host_bytes_per_second: f64,
}

#[derive(Clone, Copy, Default)]
struct Die {
    channel: u16,
    /// Time at which all operations queued on the die are done.
    ready_at: u64,
    /// Start and end of the program that was queued last.
    program_from: u64,
    program_until: u64,
    erase_from: u64,
    erase_until: u64,
    /// Time at which the host's reads so far have left the cells.
    reads_until: u64,
}

impl Die {
    /// Returns the nanoseconds left, at `at`, of the operation in progress.
    fn in_the_way(&self, at: u64, times: &FlashTimes) -> u64 {
        if (self.erase_from..self.erase_until).contains(&at) {
            self.erase_until - at
        } else if at < self.program_from {
            // Before the last program, others are queued, of which only the mean duration is known.
            (self.program_from - at - 1) % times.program_nanoseconds + 1
        } else if at < self.program_until {
            self.program_until - at
        } else {
            // Reads by garbage collection.
            self.ready_at.saturating_sub(at).min(times.read_nanoseconds)
        }
    }
}

/// Timing state of a drive's flash: when dies, buses and write buffer are free.
pub struct Flash {
    times: FlashTimes,
    random: Random,
    program_least: u64,
    program_range: u64,
    transfer_of_program: u64,
    nanoseconds_per_byte: f64,
    /// Size in bytes and overhead in nanoseconds of the last request: a cache of one entry.
    overhead: (u64, u64),
    now: u64,
    dies: Vec<Die>,
    plane_bits: u32,
    /// 2^64 / dies, rounded up: replaces a division, and a table that would fill the L1 cache.
    dies_reciprocal: u64,
    bus_ready_at: Vec<u64>,
    /// Host pages in the write buffer that are not yet programmed, by frontier.
    waiting: Vec<u32>,
    /// Completion times of the last programmed host pages, by page number modulo the length, a power of two.
    done_at: Vec<u64>,
    admitted: u64,
    programmed: u64,
    last_done_at: u64,
}

impl Flash {
    /// Creates idle flash. The write buffer must hold more than one program operation per frontier, or writes would
    /// wait for programs that wait for them; a smaller `buffer_pages` is raised to that.
    #[must_use]
    pub fn new(mut times: FlashTimes, seed: u64) -> Self {
        let dies = times.channels * times.dies_per_channel;
        times.buffer_pages = times.buffer_pages.max(u64::from(times.planes) * times.frontiers as u64 + 1);
        let spread = (times.program_nanoseconds as f64 * times.program_spread) as u64;
        Self {
            random: Random::new(seed ^ 1, Purpose::Timing),
            program_least: times.program_nanoseconds - spread,
            program_range: 2 * spread,
            transfer_of_program: times.transfer_nanoseconds * u64::from(times.planes),
            nanoseconds_per_byte: 1e9 / times.host_bytes_per_second,
            overhead: (0, times.overhead_nanoseconds),
            now: 0,
            plane_bits: times.planes.trailing_zeros(),
            dies_reciprocal: (u64::MAX / u64::from(dies)).wrapping_add(1),
            dies: (0..dies).map(|die| Die { channel: (die % times.channels) as u16, ..Die::default() }).collect(),
            bus_ready_at: vec![0; times.channels as usize],
            waiting: vec![0; times.frontiers],
            done_at: vec![0; (times.buffer_pages as usize + 1).next_power_of_two()],
            admitted: 0,
            programmed: 0,
            last_done_at: 0,
            times,
        }
    }

    /// Advances the clock to the time at which a request is issued; never sets it back.
    #[inline]
    pub fn advance_to(&mut self, nanoseconds: u64) {
        self.now = self.now.max(nanoseconds);
    }

    /// Returns the time at which the last host page entered the write buffer.
    #[inline]
    #[must_use]
    pub fn buffered_at(&self) -> u64 {
        self.now
    }

    /// Returns the time at which all pages sent to the dies so far are programmed.
    #[must_use]
    pub fn all_programmed_at(&self) -> u64 {
        self.last_done_at.max(self.now)
    }

    /// Returns the time of a request beside the flash: the fixed overhead and the transfer of `size_bytes`.
    #[inline]
    #[must_use]
    pub fn overhead_nanoseconds(&mut self, size_bytes: u64) -> u64 {
        // Most requests of a run have the same size; flushes have size 0.
        if size_bytes == 0 {
            return self.times.overhead_nanoseconds;
        }
        if self.overhead.0 != size_bytes {
            let transfer = (size_bytes as f64 * self.nanoseconds_per_byte) as u64;
            self.overhead = (size_bytes, self.times.overhead_nanoseconds + transfer);
        }
        self.overhead.1
    }

    /// Returns the die of the page at this offset of a superblock. Pages fill the planes of a die, then go to the next
    /// channel, then the next die.
    #[inline(always)]
    fn die_of(&self, offset: u32) -> usize {
        // Lemire, Kaser and Kurz 2019: exact for 32 bits.
        let fraction = self.dies_reciprocal.wrapping_mul(u64::from(offset >> self.plane_bits));
        ((u128::from(fraction) * self.dies.len() as u128) >> 64) as usize
    }

    /// Reads the page at this offset (`None`: an unmapped page, no time) and returns when its data is transferred. The
    /// read overtakes queued programs, but waits for earlier reads of its die and for the program or erase in progress,
    /// which it interrupts only on a drive that can suspend.
    pub fn read(&mut self, issued_at: u64, offset: Option<u32>) -> u64 {
        let Some(offset) = offset else { return issued_at };
        let die = self.die_of(offset);
        let die = &mut self.dies[die];
        let from = if issued_at < die.reads_until {
            die.reads_until
        } else {
            let longest = self.times.suspend_nanoseconds.unwrap_or(u64::MAX);
            issued_at + die.in_the_way(issued_at, &self.times).min(longest)
        };
        die.reads_until = from + self.times.read_nanoseconds;
        // Queued and suspended operations are delayed by the read.
        if from <= die.program_from {
            die.program_from += self.times.read_nanoseconds;
        }
        if from < die.program_until {
            die.program_until += self.times.read_nanoseconds;
        }
        die.ready_at = die.ready_at.max(issued_at) + self.times.read_nanoseconds;
        let bus = &mut self.bus_ready_at[usize::from(die.channel)];
        *bus = (*bus).max(issued_at) + self.times.transfer_nanoseconds;
        die.reads_until + self.times.transfer_nanoseconds
    }

    /// Reads the old page for a partial write, which waits for it (read-modify-write).
    pub fn fetch(&mut self, offset: u32) {
        self.now = self.read(self.now, Some(offset));
    }

    /// Adds a page at this offset, and queues the program operation on its die once that is complete.
    #[inline(always)]
    fn program(&mut self, frontier: usize, offset: u32) {
        if !(offset + 1).is_multiple_of(self.times.planes) && offset + 1 != self.times.pages_per_block {
            return;
        }
        let die = self.die_of(offset);
        let die = &mut self.dies[die];
        let bus = &mut self.bus_ready_at[usize::from(die.channel)];
        *bus = (*bus).max(self.now) + self.transfer_of_program;
        let spread = ((self.random.bits() >> 32) * self.program_range) >> 32;
        die.program_from = die.ready_at.max(*bus);
        die.program_until = die.program_from + self.program_least + spread;
        die.ready_at = die.program_until;
        let done = die.program_until;
        let mask = self.done_at.len() - 1;
        for _ in 0..std::mem::take(&mut self.waiting[frontier]) {
            self.done_at[self.programmed as usize & mask] = done;
            self.programmed += 1;
            self.last_done_at = self.last_done_at.max(done);
        }
    }
}

impl Media for Flash {
    #[inline(always)]
    fn host_page(&mut self, frontier: usize, offset: u32) {
        // A page enters the buffer once the page that entered `buffer_pages` before it is programmed.
        if self.admitted >= self.times.buffer_pages {
            let leaving = (self.admitted - self.times.buffer_pages) as usize & (self.done_at.len() - 1);
            self.now = self.now.max(self.done_at[leaving]);
        }
        self.admitted += 1;
        self.waiting[frontier] += 1;
        self.program(frontier, offset);
    }

    #[inline(always)]
    fn copied_page(&mut self, frontier: usize, offset: u32, source_offset: u32) {
        // Reads by garbage collection run ahead of the programs: they occupy die and bus, but no program waits for its
        // own.
        let die = self.die_of(source_offset);
        let die = &mut self.dies[die];
        die.ready_at = die.ready_at.max(self.now) + self.times.read_nanoseconds;
        let bus = &mut self.bus_ready_at[usize::from(die.channel)];
        *bus = (*bus).max(self.now) + self.times.transfer_nanoseconds;
        self.program(frontier, offset);
    }

    #[inline(always)]
    fn padded_page(&mut self, frontier: usize, offset: u32) {
        self.program(frontier, offset);
    }

    fn erased(&mut self) {
        for die in &mut self.dies {
            die.erase_from = die.ready_at.max(self.now);
            die.erase_until = die.erase_from + self.times.erase_nanoseconds;
            die.ready_at = die.erase_until;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flash(buffer_pages: u64) -> Flash {
        let times = FlashTimes {
            channels: 2,
            dies_per_channel: 2,
            planes: 2,
            pages_per_block: 16,
            frontiers: 1,
            read_nanoseconds: 100,
            program_nanoseconds: 1000,
            program_spread: 0.0,
            erase_nanoseconds: 5000,
            transfer_nanoseconds: 10,
            suspend_nanoseconds: None,
            buffer_pages,
            overhead_nanoseconds: 7,
            host_bytes_per_second: 1e9,
        };
        Flash::new(times, 1)
    }

    fn write(flash: &mut Flash, pages: u32) {
        (0..pages).for_each(|page| flash.host_page(0, page % 16));
    }

    #[test]
    fn writes_cost_nothing_until_the_buffer_is_full_and_then_the_program_time() {
        let mut flash = flash(16);
        write(&mut flash, 16);
        assert_eq!(flash.buffered_at(), 0);
        write(&mut flash, 1);
        assert_eq!(flash.buffered_at(), 1020, "transfer of two pages, one program");
        write(&mut flash, 4096);
        let per_page = flash.buffered_at() as f64 / 4096.0;
        assert!((120.0..130.0).contains(&per_page), "{per_page}: 1000 ns over four dies of two planes is 125 a page");
    }

    #[test]
    fn a_read_waits_for_the_program_in_its_way_but_not_for_those_behind_it() {
        let mut flash = flash(64);
        assert_eq!(flash.read(0, Some(0)), 110);
        write(&mut flash, 32);
        let done = flash.read(500, Some(0));
        assert!(done > 610 && done <= 500 + 1000 + 110, "{done}");
    }

    #[test]
    fn reads_of_a_die_come_one_after_the_other_whatever_is_queued_behind_them() {
        for (suspend_nanoseconds, first) in [(None, 1020), (Some(50), 550)] {
            let mut flash = flash(64);
            flash.times.suspend_nanoseconds = suspend_nanoseconds;
            write(&mut flash, 32);
            for count in 1..=20 {
                assert_eq!(flash.read(500, Some(0)), first + 100 * count + 10, "read {count}");
            }
        }
    }

    #[test]
    fn a_read_waits_for_the_rest_of_a_program_however_long_that_takes() {
        let mut flash = flash(64);
        (flash.program_least, flash.program_range) = (1100, 0);
        write(&mut flash, 2);
        assert_eq!(flash.read(30, Some(0)), 1120 + 110, "not modulo the mean of 1000");
    }

    #[test]
    fn a_read_waits_for_an_erase_unless_it_can_suspend_it() {
        for (suspend_nanoseconds, wait) in [(None, 4000), (Some(50), 50)] {
            let mut busy = flash(64);
            busy.times.suspend_nanoseconds = suspend_nanoseconds;
            busy.erased();
            assert_eq!(busy.read(1000, Some(3)), 1000 + wait + 110);
        }
    }
}
