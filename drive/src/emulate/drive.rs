//! Modelled drive: effect of each request on the translation layer, and the time at which it completes.

use crate::error::Result;
use crate::ftl::{CostBenefit, Counters, Fifo, Ftl, Greedy, PartialWrite, SavedLayer, Untimed, VictimPolicy};
use crate::plan::DrivePlan;
use crate::settings::Policy;
use crate::spans::{PagePart, PageSpan};
use crate::timing::Flash;

/// Kind of a request to the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestKind {
    /// Read of data.
    Read,
    /// Write of data.
    Write,
    /// Trim (discard) of data.
    Trim,
    /// Flush: data written before must survive a loss of power.
    Flush,
}

impl RequestKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Trim, Self::Flush];

    /// Returns the name in metrics and faults.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["read", "write", "trim", "flush"][self as usize]
    }
}

/// Translation layer of a drive, with its timing, for any victim policy.
pub trait TranslationLayer: Send {
    /// Executes a request that arrives at `now_nanoseconds`; returns when it is done. The range must lie inside the
    /// drive.
    fn perform(&mut self, operation: RequestKind, offset_bytes: u64, size_bytes: u64, now_nanoseconds: u64) -> u64;
    /// Returns the page counts since the drive was new.
    fn counters(&self) -> Counters;
    /// Returns the bytes written by the host since the drive was new.
    fn host_bytes(&self) -> u64;
    /// Returns the share of superblocks that are clean (erased), 0 to 1.
    fn clean_ratio(&self) -> f64;
    /// Returns the share of physical pages that hold mapped data: written and not trimmed.
    fn mapped_ratio(&self) -> f64;
    /// Returns the number of superblocks of the drive.
    fn total_blocks(&self) -> u32;
    /// Finishes garbage collection in progress and returns the state to save.
    fn save(&mut self) -> SavedLayer;
    /// Restores a saved state; `None` if it is damaged or of another geometry.
    fn restore(&mut self, state: SavedLayer) -> Option<()>;
}

/// Creates the translation layer of a plan, for a new drive.
///
/// # Errors
/// Those of [`Ftl::new`].
pub fn layer(plan: &DrivePlan) -> Result<Box<dyn TranslationLayer>> {
    Ok(match plan.policy {
        Policy::Greedy => Box::new(ModelledDrive::<Greedy>::new(plan)?),
        Policy::Fifo => Box::new(ModelledDrive::<Fifo>::new(plan)?),
        Policy::CostBenefit => Box::new(ModelledDrive::<CostBenefit>::new(plan)?),
    })
}

struct ModelledDrive<V> {
    ftl: Ftl<V>,
    /// Timing model of the flash, `None` where requests take no time.
    flash: Option<Flash>,
    page_bytes: u64,
    buffer_protected: bool,
    host_bytes: u64,
}

impl<V: VictimPolicy> ModelledDrive<V> {
    fn new(plan: &DrivePlan) -> Result<Self> {
        Ok(Self {
            ftl: Ftl::new(plan.shape.clone())?,
            flash: plan.timed.then(|| Flash::new(plan.times.clone(), plan.seed())),
            page_bytes: plan.page_bytes,
            buffer_protected: plan.buffer_protected,
            host_bytes: 0,
        })
    }
}

impl<V: VictimPolicy + Send> TranslationLayer for ModelledDrive<V> {
    fn perform(&mut self, operation: RequestKind, offset_bytes: u64, size_bytes: u64, now: u64) -> u64 {
        if size_bytes == 0 && operation != RequestKind::Flush {
            return now;
        }
        let span = PageSpan::new(offset_bytes, size_bytes, self.page_bytes);
        let waits = !self.buffer_protected;
        if operation == RequestKind::Write {
            self.host_bytes += size_bytes;
        }
        match &mut self.flash {
            Some(flash) => {
                let done = match operation {
                    RequestKind::Write => write(&mut self.ftl, &span, flash, now),
                    RequestKind::Read => read(&self.ftl, &span, flash, now),
                    RequestKind::Trim => trim(&mut self.ftl, &span, now),
                    RequestKind::Flush => flush(&mut self.ftl, flash, waits, now),
                };
                done.max(now) + flash.overhead_nanoseconds(if operation == RequestKind::Trim { 0 } else { size_bytes })
            }
            None => {
                match operation {
                    RequestKind::Write => write_untimed(&mut self.ftl, &span),
                    RequestKind::Trim => _ = trim(&mut self.ftl, &span, now),
                    RequestKind::Flush if waits => self.ftl.pad(&mut Untimed),
                    RequestKind::Read | RequestKind::Flush => {}
                }
                now
            }
        }
    }

    fn counters(&self) -> Counters {
        self.ftl.counters()
    }

    fn host_bytes(&self) -> u64 {
        self.host_bytes
    }

    fn clean_ratio(&self) -> f64 {
        self.ftl.clean_ratio()
    }

    fn mapped_ratio(&self) -> f64 {
        self.ftl.mapped_ratio()
    }

    fn total_blocks(&self) -> u32 {
        self.ftl.shape().total_blocks()
    }

    fn save(&mut self) -> SavedLayer {
        let mut state = self.ftl.save();
        state.host_bytes = self.host_bytes;
        state
    }

    fn restore(&mut self, state: SavedLayer) -> Option<()> {
        self.host_bytes = state.host_bytes;
        self.ftl.restore(state)
    }
}

fn write<V: VictimPolicy>(ftl: &mut Ftl<V>, span: &PageSpan, flash: &mut Flash, now: u64) -> u64 {
    flash.advance_to(now);
    for part in span.head.into_iter().chain(span.tail) {
        if let PartialWrite::Rewrote(offset) = ftl.write_part(part.page as u32, 0, flash) {
            flash.fetch(offset);
        }
    }
    span.whole.clone().for_each(|page| ftl.write(page as u32, 0, flash));
    flash.buffered_at()
}

fn write_untimed<V: VictimPolicy>(ftl: &mut Ftl<V>, span: &PageSpan) {
    for part in span.head.into_iter().chain(span.tail) {
        ftl.write_part(part.page as u32, 0, &mut Untimed);
    }
    span.whole.clone().for_each(|page| ftl.write(page as u32, 0, &mut Untimed));
}

fn read<V: VictimPolicy>(ftl: &Ftl<V>, span: &PageSpan, flash: &mut Flash, now: u64) -> u64 {
    let page = |part: PagePart| part.page;
    let pages = span.head.map(page).into_iter().chain(span.whole.clone()).chain(span.tail.map(page));
    pages.map(|page| flash.read(now, ftl.locate(page as u32))).max().unwrap_or(now)
}

fn trim<V: VictimPolicy>(ftl: &mut Ftl<V>, span: &PageSpan, now: u64) -> u64 {
    span.whole.clone().for_each(|page| ftl.trim(page as u32));
    now
}

fn flush<V: VictimPolicy>(ftl: &mut Ftl<V>, flash: &mut Flash, waits: bool, now: u64) -> u64 {
    flash.advance_to(now);
    if waits {
        ftl.pad::<Flash>(flash);
        return flash.all_programmed_at();
    }
    now
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Settings, TimingSetting};

    fn drive(timing: TimingSetting) -> Box<dyn TranslationLayer> {
        let settings = Settings { blocks: Some(64), timing: Some(timing), ..Settings::default() };
        layer(&DrivePlan::new(settings).unwrap()).unwrap()
    }

    #[test]
    fn requests_are_counted_in_pages_and_take_the_modelled_time() {
        let mut drive = drive(TimingSetting::On);
        let written = drive.perform(RequestKind::Write, 4096, 40960, 1000);
        assert_eq!(drive.counters().host_pages, 3, "a part, a whole page and a part");
        assert!((11_000..60_000).contains(&written), "{written}: buffered");
        let read = drive.perform(RequestKind::Read, 16384, 16384, 10_000_000);
        assert!((10_080_000..10_120_000).contains(&read), "{read}: read, transfer and overhead");
        drive.perform(RequestKind::Trim, 0, 40960, 20_000_000);
        assert_eq!(drive.counters().trimmed_pages, 2, "only whole pages");
    }

    #[test]
    fn without_timing_requests_take_none() {
        let mut drive = drive(TimingSetting::Off);
        for operation in RequestKind::ALL {
            assert_eq!(drive.perform(operation, 0, 1 << 20, 77), 77);
        }
        assert_eq!(drive.counters().host_pages, 64);
    }
}
