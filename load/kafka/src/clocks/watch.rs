//! Threads that write and read clock notes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cliffwatch_measure::NANOSECONDS;
use cliffwatch_measure::clock::nanoseconds;
use cliffwatch_measure::recorder::Recorder;
use serde_json::json;

use super::estimate::{AnsweredFetch, Estimate, Offset};
use super::mailbox::Mailbox;
use super::note::{ClockNote, Machine, NoteSequence};
use super::wall;
use crate::error::{Error, Result};
use crate::hot::events::EventReporter;
use crate::names::Gauge;
use crate::session::{Address, Dialer};
use crate::shared::Shared;

const NOTES_APART: u64 = NANOSECONDS;
/// Interval of fetches until both bounds are known; no divisor of the interval of notes.
const FIRST_LOOKS_APART: u64 = 230_000_000;
const LOOK: Duration = Duration::from_millis(20);
/// Wait after a failed fetch.
const BACKOFF_NANOSECONDS: u64 = NANOSECONDS;

/// Resources of the threads that write and read clock notes.
pub(crate) struct ClockContext {
    /// Dialer for broker connections.
    pub(crate) dialer: Arc<Dialer>,
    /// Bootstrap servers.
    pub(crate) bootstrap: Arc<Vec<Address>>,
    /// State shared by all threads of the run.
    pub(crate) shared: Arc<Shared>,
    /// Reporter of clock events.
    pub(crate) events: EventReporter,
    /// Set when the run is over; ends the threads.
    pub(crate) ended: Arc<AtomicBool>,
}

impl ClockContext {
    fn open(&self, incarnation: u32) -> Result<Mailbox> {
        let first = &self.shared.partitions[0];
        let topic = &self.shared.topics[first.topic];
        Mailbox::open(&self.dialer, &self.bootstrap, incarnation, topic, first.index)
    }

    /// Sleeps until `moment` (nanoseconds since the epoch); false when the run ends first.
    fn wait_until(&self, moment: u64) -> bool {
        loop {
            if self.ended.load(Ordering::Acquire) {
                return false;
            }
            let now = self.shared.clock.now();
            if now >= moment {
                return true;
            }
            self.shared.clock.sleep_until(moment.min(now + LOOK.as_nanos() as u64));
        }
    }

    /// Reports an error; false when it is permanent.
    fn complain(&mut self, error: &Error) -> bool {
        self.events.report_recurring("clock_offset_unavailable", "", json!({"error": error.to_string()}));
        error.is_transient()
    }
}

/// Thread that writes a clock note each second, for processes that consume this one's records.
pub(crate) struct NoteWriter(pub(crate) ClockContext);

impl NoteWriter {
    /// Runs until the run is over or a permanent error occurs. Blocks.
    pub(crate) fn run(self) {
        let Self(mut context) = self;
        let clock = context.shared.clock;
        let Some(machine) = Machine::here(clock) else { return };
        let (mut writer, mut mailbox) = (NoteSequence::new(machine), None);
        while context.wait_until(clock.now() / NOTES_APART * NOTES_APART + NOTES_APART) {
            let opened = match mailbox.take() {
                Some(mailbox) => Ok(mailbox),
                None => context.open(context.shared.incarnation),
            };
            let left = opened.and_then(|mut opened| {
                let note = writer.next(clock);
                opened.leave(&note)?;
                writer.acknowledged(&note, clock.now());
                Ok(opened)
            });
            match left {
                Ok(opened) => mailbox = Some(opened),
                Err(error) => {
                    if !context.complain(&error) {
                        return;
                    }
                }
            }
        }
        if let Some(mut mailbox) = mailbox {
            mailbox.remove();
        }
    }
}

/// Thread that reads the clock notes of producing processes and estimates their clock offsets.
pub(crate) struct NoteReader {
    /// Dialer, shared state and event reporter.
    pub(crate) context: ClockContext,
    /// Recorder of the clock offset gauges.
    pub(crate) recorder: Recorder,
}

/// State of one writer: mailbox, estimate, next fetch, last report.
#[derive(Default)]
struct WriterState {
    mailbox: Option<Mailbox>,
    estimate: Estimate,
    next_at: u64,
    is_settled: bool,
    reported: Option<Offset>,
}

impl NoteReader {
    /// Runs until the run is over or a permanent error occurs. Blocks.
    pub(crate) fn run(mut self) {
        let clock = self.context.shared.clock;
        let Some(machine) = Machine::here(clock) else { return };
        let mut writers: BTreeMap<u32, WriterState> = BTreeMap::new();
        loop {
            for wanted in self.context.shared.peers.wanted() {
                writers.entry(wanted).or_default();
            }
            let next = writers.iter().filter(|(_, writer)| !writer.is_settled).min_by_key(|(_, writer)| writer.next_at);
            let Some((incarnation, next_at)) = next.map(|(incarnation, writer)| (*incarnation, writer.next_at)) else {
                if !self.context.wait_until(clock.now() + LOOK.as_nanos() as u64) {
                    return;
                }
                continue;
            };
            if !self.context.wait_until(next_at) {
                return;
            }
            let Some(writer) = writers.get_mut(&incarnation) else { continue };
            if let Err(error) = self.look(incarnation, writer, &machine) {
                (writer.mailbox, writer.next_at) = (None, clock.now() + BACKOFF_NANOSECONDS);
                if !self.context.complain(&error) {
                    return;
                }
            }
        }
    }

    fn look(&mut self, incarnation: u32, writer: &mut WriterState, machine: &Machine) -> Result<()> {
        let clock = self.context.shared.clock;
        let mut mailbox = match writer.mailbox.take() {
            Some(mailbox) => mailbox,
            None => self.context.open(incarnation)?,
        };
        let asked = clock.now();
        let note = mailbox.look()?;
        let answered = clock.now();
        writer.mailbox = Some(mailbox);
        writer.next_at = answered + FIRST_LOOKS_APART;
        let Some(note) = note else { return Ok(()) };
        let offset = match note.machine.ahead_of(machine) {
            Some(ahead) => {
                writer.is_settled = true;
                Some(Offset::exact(ahead))
            }
            None => {
                let asked = AnsweredFetch { asked, answered };
                writer.estimate.take(asked, &note);
                if let Some(middle) = writer.estimate.middle() {
                    writer.next_at = next_look(asked, &note, middle);
                }
                writer.estimate.offset(wall::ahead_of(clock).unwrap_or(0) - note.wall_ahead)
            }
        };
        if let Some(offset) = offset {
            self.context.shared.peers.learn(incarnation, offset);
            self.report(incarnation, writer, offset);
        }
        self.show();
        Ok(())
    }

    fn show(&self) {
        let Some(worst) = self.context.shared.peers.worst() else { return };
        let mut tally = self.recorder.lock();
        tally.set(Gauge::ClockOffset as usize, worst.ahead as f64 / NANOSECONDS as f64);
        tally.set(Gauge::ClockOffsetBound as usize, worst.bound as f64 / NANOSECONDS as f64);
    }

    /// Reports an offset that is new: the first one, one with at most half the error bound reported before, or one that
    /// differs by more than the larger bound.
    fn report(&self, incarnation: u32, writer: &mut WriterState, offset: Offset) {
        let is_new = writer.reported.is_none_or(|reported| {
            offset.bound <= reported.bound / 2
                || offset.ahead.abs_diff(reported.ahead) > reported.bound.max(offset.bound)
        });
        if !is_new {
            return;
        }
        writer.reported = Some(offset);
        let seconds = |nanoseconds: f64| nanoseconds / NANOSECONDS as f64;
        let detail = json!({
            "producer": format!("{incarnation:06x}"), "offset_seconds": seconds(offset.ahead as f64),
            "bound_seconds": seconds(offset.bound as f64),
            "by": if offset.is_exact { "the machine's clock" } else { "notes left with the brokers" },
        });
        self.context.events.report("clock_offset", detail);
    }
}

/// Time of the next fetch, in nanoseconds since the epoch: aimed so that it and the next note should reach the broker
/// together. Whether it returns the note then halves the bounds.
fn next_look(fetch: AnsweredFetch, note: &ClockNote, middle: i64) -> u64 {
    let takes = note.before.last().map_or(0, |left| left.acknowledged.saturating_sub(left.begun));
    let there = fetch.answered.saturating_add_signed(middle);
    let mut next = there / NOTES_APART * NOTES_APART + NOTES_APART + takes / 2;
    let question = (fetch.answered - fetch.asked) / 2;
    // A second fetch for the same note would add nothing.
    while next < there + question + nanoseconds(0.3) {
        next += NOTES_APART;
    }
    next.saturating_add_signed(-middle) - question
}
