//! What a loss of power takes: what was written or trimmed, and was not made durable since.
//!
//! From when a cut is announced, what each write and trim replaces is kept until it is durable: once a flush that came
//! after it is answered or, where the buffer is protected, once it is answered itself. The cut puts back any part of what
//! is kept: of one request all, of another nothing, of a third sector by sector. Of two requests on one sector the later
//! is never kept without what it was written over. Everything then fails until power is back.

use super::drive::RequestKind;
use crate::random::{Purpose, Random};
use crate::sync::lock;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

/// What a drive writes whole or not at all.
const SECTOR_BYTES: usize = 512;
/// What is kept at once of a range that is trimmed.
const CHUNK_BYTES: u64 = 1 << 20;

/// When power is cut, and what is lost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PowerCut {
    /// Writes from when this fault is set, of which the last is the last that the drive takes. 0 cuts at once.
    pub after_writes: u64,
    /// Decides what is lost.
    pub seed: u64,
}

/// Whether a drive has power, and what it would lose without.
#[derive(Default)]
pub struct Power(Mutex<Supply>);

#[derive(Default)]
struct Supply {
    state: State,
    /// How often power was cut.
    cuts: u64,
}

#[derive(Default)]
enum State {
    #[default]
    On,
    Announced(Volatile),
    Off,
}

/// A request that the drive took while it had power.
pub struct Taken {
    cuts: u64,
    /// Which of the changes that are kept become durable once it is answered.
    durable: Range<u64>,
}

impl Power {
    /// Announces a cut, puts off or brings forward one that was announced, or (`None`) turns power on again.
    ///
    /// # Errors
    /// The system's, if the content cannot be changed.
    pub fn set(&self, cut: Option<&PowerCut>, backing: &File) -> io::Result<()> {
        let mut supply = lock(&self.0);
        let Some(cut) = cut else {
            supply.state = State::On;
            return Ok(());
        };
        let volatile = match std::mem::replace(&mut supply.state, State::Off) {
            State::On => Volatile::default(),
            State::Announced(volatile) => volatile,
            State::Off => return Ok(()),
        };
        supply.state = State::Announced(Volatile { cut: cut.clone(), ..volatile });
        if cut.after_writes == 0 { supply.cut(backing) } else { Ok(()) }
    }

    /// Whether everything fails.
    pub fn is_off(&self) -> bool {
        matches!(lock(&self.0).state, State::Off)
    }

    /// Makes a change of this kind to the content, or begins a flush. `is_protected` says that what is answered is durable.
    ///
    /// # Errors
    /// EIO without power; otherwise the system's.
    pub fn take(
        &self,
        operation: RequestKind,
        bytes: Range<u64>,
        is_protected: bool,
        backing: &File,
        change: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<Taken> {
        let mut supply = lock(&self.0);
        let cuts = supply.cuts;
        let volatile = match &mut supply.state {
            State::On => {
                drop(supply);
                return change().map(|()| Taken { cuts, durable: 0..0 });
            }
            State::Off => return Err(without_power()),
            State::Announced(volatile) => volatile,
        };
        let durable = match operation {
            RequestKind::Read => 0..0,
            RequestKind::Flush => 0..volatile.next,
            RequestKind::Write | RequestKind::Trim => {
                let kept = volatile.keep(backing, bytes)?;
                if is_protected { kept } else { 0..0 }
            }
        };
        change()?;
        if operation == RequestKind::Write {
            volatile.cut.after_writes -= 1;
            if volatile.cut.after_writes == 0 {
                supply.cut(backing)?;
            }
        }
        Ok(Taken { cuts, durable })
    }

    /// Answers a request, which makes durable what it promises.
    ///
    /// # Errors
    /// EIO where power was cut since it was taken.
    pub fn answer(&self, taken: &Taken) -> io::Result<()> {
        let mut supply = lock(&self.0);
        if supply.cuts != taken.cuts {
            return Err(without_power());
        }
        if let State::Announced(volatile) = &mut supply.state
            && !taken.durable.is_empty()
        {
            volatile.kept.retain(|number, _| !taken.durable.contains(number));
        }
        Ok(())
    }
}

fn without_power() -> io::Error {
    io::Error::from_raw_os_error(libc::EIO)
}

impl Supply {
    fn cut(&mut self, backing: &File) -> io::Result<()> {
        self.cuts += 1;
        match std::mem::replace(&mut self.state, State::Off) {
            State::Announced(volatile) => volatile.lose(backing),
            State::On | State::Off => Ok(()),
        }
    }
}

/// What would be lost, in the order in which it came.
#[derive(Default)]
struct Volatile {
    cut: PowerCut,
    next: u64,
    kept: BTreeMap<u64, Replaced>,
}

/// What a change took the place of.
struct Replaced {
    offset_bytes: u64,
    content: Vec<u8>,
}

impl Volatile {
    /// Keeps what is there, and says under which numbers.
    fn keep(&mut self, backing: &File, bytes: Range<u64>) -> io::Result<Range<u64>> {
        let first = self.next;
        let end = bytes.end;
        for at in bytes.step_by(CHUNK_BYTES as usize) {
            let mut content = vec![0; CHUNK_BYTES.min(end - at) as usize];
            backing.read_exact_at(&mut content, at)?;
            self.kept.insert(self.next, Replaced { offset_bytes: at, content });
            self.next += 1;
        }
        Ok(first..self.next)
    }

    fn lose(self, backing: &File) -> io::Result<()> {
        let mut random = Random::new(self.cut.seed, Purpose::Power);
        let mut stays: HashSet<u64> = HashSet::new();
        for replaced in self.kept.into_values().rev() {
            let fate = random.below(3);
            let mut offset = replaced.offset_bytes;
            let mut rest = replaced.content.as_slice();
            while !rest.is_empty() {
                let sector = offset / SECTOR_BYTES as u64;
                let until_next = (sector + 1) * SECTOR_BYTES as u64 - offset;
                let (part, after) = rest.split_at(rest.len().min(until_next as usize));
                let is_lost = fate == 0 || (fate == 1 && random.below(2) == 0);
                if is_lost && !stays.contains(&sector) {
                    backing.write_all_at(part, offset)?;
                } else {
                    stays.insert(sector);
                }
                offset += part.len() as u64;
                rest = after;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLUSH: RequestKind = RequestKind::Flush;
    const WRITE: RequestKind = RequestKind::Write;

    /// A drive of eight sectors of zeros whose power is to be cut.
    struct Fixture {
        backing: File,
        power: Power,
        is_protected: bool,
    }

    impl Fixture {
        fn new(is_protected: bool, cut: &PowerCut) -> Self {
            // SAFETY: the name is a string that ends with a zero; the descriptor that is returned has no other owner.
            let backing = unsafe {
                use std::os::fd::FromRawFd;
                File::from_raw_fd(libc::memfd_create(c"drive".as_ptr(), 0))
            };
            backing.set_len(8 * SECTOR_BYTES as u64).unwrap();
            let power = Power::default();
            power.set(Some(cut), &backing).unwrap();
            Self { backing, power, is_protected }
        }

        fn take(&self, operation: RequestKind, value: u8) -> io::Result<Taken> {
            let content = [value; 8 * SECTOR_BYTES];
            let size = if operation == WRITE { content.len() as u64 } else { 0 };
            let change = || if size > 0 { self.backing.write_all_at(&content, 0) } else { Ok(()) };
            self.power.take(operation, 0..size, self.is_protected, &self.backing, change)
        }

        fn sectors(&self) -> Vec<u8> {
            let mut content = [0; 8 * SECTOR_BYTES];
            self.backing.read_exact_at(&mut content, 0).unwrap();
            let sectors = content.as_chunks::<SECTOR_BYTES>().0;
            assert!(sectors.iter().all(|sector| sector.iter().all(|byte| *byte == sector[0])), "a sector is torn");
            sectors.iter().map(|sector| sector[0]).collect()
        }
    }

    #[test]
    fn what_was_not_flushed_is_lost_in_any_part_and_nothing_else() {
        let mut seen = HashSet::new();
        for seed in 0..200 {
            let drive = Fixture::new(false, &PowerCut { after_writes: 3, seed });
            drive.power.answer(&drive.take(WRITE, 1).unwrap()).unwrap();
            drive.power.answer(&drive.take(FLUSH, 0).unwrap()).unwrap();
            drive.power.answer(&drive.take(WRITE, 2).unwrap()).unwrap();
            let last = drive.take(WRITE, 3).unwrap();
            assert_eq!(drive.power.answer(&last).unwrap_err().raw_os_error(), Some(libc::EIO));
            assert!(drive.power.is_off() && drive.take(WRITE, 4).is_err() && drive.take(FLUSH, 0).is_err());
            seen.insert(drive.sectors());
        }
        assert!(seen.iter().flatten().all(|value| (1..=3).contains(value)), "{seen:?}");
        assert!([1, 2, 3].iter().all(|value| seen.contains(&vec![*value; 8])), "each of them whole");
        assert!(seen.len() > 50, "{seen:?}");
    }

    #[test]
    fn a_flush_that_is_not_answered_made_nothing_durable_even_when_power_is_back() {
        let mut seen = HashSet::new();
        for seed in 0..50 {
            let drive = Fixture::new(false, &PowerCut { after_writes: 9, seed });
            drive.power.answer(&drive.take(WRITE, 1).unwrap()).unwrap();
            let flush = drive.take(FLUSH, 0).unwrap();
            drive.power.set(Some(&PowerCut { after_writes: 0, seed }), &drive.backing).unwrap();
            drive.power.set(None, &drive.backing).unwrap();
            assert!(drive.power.answer(&flush).is_err());
            seen.extend(drive.sectors());
            drive.power.answer(&drive.take(WRITE, 1).unwrap()).unwrap();
        }
        assert_eq!(seen, HashSet::from([0, 1]));
    }

    #[test]
    fn a_protected_buffer_loses_only_what_was_not_answered() {
        let mut seen = HashSet::new();
        for seed in 0..50 {
            let drive = Fixture::new(true, &PowerCut { after_writes: 9, seed });
            drive.power.answer(&drive.take(WRITE, 1).unwrap()).unwrap();
            let _unanswered = drive.take(WRITE, 2).unwrap();
            drive.power.set(Some(&PowerCut { after_writes: 0, seed }), &drive.backing).unwrap();
            seen.extend(drive.sectors());
        }
        assert_eq!(seen, HashSet::from([1, 2]));
    }

    #[test]
    fn what_was_trimmed_and_not_flushed_may_be_back() {
        let mut seen = HashSet::new();
        for seed in 0..20 {
            let drive = Fixture::new(false, &PowerCut { after_writes: 2, seed });
            drive.power.answer(&drive.take(WRITE, 1).unwrap()).unwrap();
            drive.power.answer(&drive.take(FLUSH, 0).unwrap()).unwrap();
            let zeros = || drive.backing.write_all_at(&[0; 8 * SECTOR_BYTES], 0);
            let range = 0..8 * SECTOR_BYTES as u64;
            drive.power.take(RequestKind::Trim, range, false, &drive.backing, zeros).unwrap();
            drive.power.set(Some(&PowerCut { after_writes: 0, seed }), &drive.backing).unwrap();
            seen.extend(drive.sectors());
        }
        assert_eq!(seen, HashSet::from([0, 1]));
    }
}
