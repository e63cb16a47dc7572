//! Emulated loss of power: undoes writes and trims that were not yet durable.
//!
//! Once a cut is announced, the content that each write and trim replaces is kept until the change is durable: once a
//! later flush is answered or, with a protected buffer, once the request itself is answered. The cut restores a random
//! part of the kept content: for one request all, for another nothing, for a third some sectors. In a sector where a
//! change survives, earlier changes survive as well. All requests then fail until power is back.

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

/// Unit of an atomic write, in bytes.
const SECTOR_BYTES: usize = 512;
/// Largest piece of a range that is kept at once, in bytes.
const CHUNK_BYTES: u64 = 1 << 20;

/// Power cut: when it comes, and what it loses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PowerCut {
    /// Number of writes, from when this fault is set, of which the last is the last that the drive executes. 0 cuts at
    /// once.
    pub after_writes: u64,
    /// Seed of the choice of lost data.
    pub seed: u64,
}

/// Power state of a drive, and the changes that a cut would lose.
#[derive(Default)]
pub struct Power(Mutex<Supply>);

#[derive(Default)]
struct Supply {
    state: State,
    /// Number of power cuts so far.
    cuts: u64,
}

#[derive(Default)]
enum State {
    #[default]
    On,
    Announced(Volatile),
    Off,
}

/// Request that was executed while the drive had power.
pub struct Taken {
    cuts: u64,
    /// Numbers of the kept changes that become durable once the request is answered.
    durable: Range<u64>,
}

impl Power {
    /// Announces a power cut or changes the one announced (no effect while power is off); `None` cancels it or turns
    /// power on.
    ///
    /// # Errors
    /// The system's error, if the backing file cannot be read or changed.
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

    /// Whether power is off, so that all requests fail.
    pub fn is_off(&self) -> bool {
        matches!(lock(&self.0).state, State::Off)
    }

    /// Executes `change` on the content, or starts a flush. `is_protected`: answered changes are durable.
    ///
    /// # Errors
    /// EIO without power; otherwise the system's error.
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

    /// Marks the changes as durable that the answer to this request promises.
    ///
    /// # Errors
    /// EIO if power was cut since the request was executed.
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

/// Content that a cut may restore, in the order of the changes that replaced it.
#[derive(Default)]
struct Volatile {
    cut: PowerCut,
    next: u64,
    kept: BTreeMap<u64, Replaced>,
}

/// Content that a change replaced.
struct Replaced {
    offset_bytes: u64,
    content: Vec<u8>,
}

impl Volatile {
    /// Keeps the present content of a range; returns the numbers of its pieces.
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

    /// Drive of eight sectors of zeros, with a power cut announced.
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
