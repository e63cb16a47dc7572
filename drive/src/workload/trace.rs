//! Replay of a recorded block trace.

use super::{Operation, OperationKind, Workload};
use crate::error::{Error, Result};
use crate::spans::{PagePart, PageSpan};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::Path;

const SECTOR_BYTES: u64 = 512;
/// Largest time in a trace, in seconds: 30 years.
const SECONDS_MAX: f64 = 1e9;

/// Event of a request, among those that `blkparse` prints, that is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceAction {
    /// Q: the request entered the block layer.
    Queued,
    /// D: the request was sent to the drive, merged as the block layer merged it.
    Dispatched,
}

/// Workload that replays a block trace held in memory.
pub struct Trace {
    operations: Vec<Operation>,
    next: usize,
    repeat: bool,
    /// Time added to the recorded times of the present round, and length of one round.
    shift_nanoseconds: u64,
    length_nanoseconds: u64,
    page_bytes: u64,
}

/// One request of a trace.
struct TraceRequest {
    nanoseconds: u64,
    kind: OperationKind,
    offset_bytes: u64,
    size_bytes: u64,
}

impl Trace {
    /// Reads a trace from a file: CSV with the header `seconds,operation,offset_bytes,size_bytes` (operation one of
    /// write, read, trim, flush), or the text that `blkparse` prints, of which the lines of `action` are used.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be read; [`Error::Trace`] with the line that is invalid or lies outside the
    /// volume, or if no line can be replayed.
    pub fn read(path: &Path, action: TraceAction, repeat: bool, page_bytes: u64, volume_pages: u32) -> Result<Self> {
        let file = File::open(path).map_err(Error::file(path))?;
        Self::parse(BufReader::new(file), path, action, repeat, page_bytes, volume_pages)
    }

    /// Parses the trace `text`; `path` is its file, for error messages.
    ///
    /// # Errors
    /// As [`Trace::read`].
    pub(crate) fn parse(
        text: impl BufRead,
        path: &Path,
        action: TraceAction,
        repeat: bool,
        page_bytes: u64,
        volume_pages: u32,
    ) -> Result<Self> {
        let mut trace =
            Self { operations: Vec::new(), next: 0, repeat, shift_nanoseconds: 0, length_nanoseconds: 0, page_bytes };
        let mut is_csv = false;
        let mut last = 0;
        for (number, line) in text.lines().enumerate() {
            let line = line.map_err(Error::file(path))?;
            let wrong = |reason: String| Error::Trace { path: path.into(), line: number + 1, reason };
            if number == 0 && line.starts_with("seconds,") {
                is_csv = true;
                continue;
            }
            let request = if is_csv { parse_csv(&line).map_err(wrong)? } else { parse_blkparse(&line, action) };
            let Some(request) = request else { continue };
            last = request.nanoseconds.max(last);
            let end = request.offset_bytes.checked_add(request.size_bytes);
            if end.is_none_or(|end| end > u64::from(volume_pages) * page_bytes) {
                let volume_bytes = u64::from(volume_pages) * page_bytes;
                let reason = format!(
                    "the request lies beyond the volume of {volume_bytes} bytes: simulate a larger drive (--capacity)"
                );
                return Err(wrong(reason));
            }
            trace.append(&TraceRequest { nanoseconds: last.max(1), ..request });
        }
        if trace.operations.is_empty() {
            let reason = "nothing to play: expected CSV with the header seconds,operation,offset_bytes,size_bytes, or \
                          blkparse text with lines of the chosen --trace-action";
            return Err(Error::Trace { path: path.into(), line: 1, reason: reason.into() });
        }
        trace.length_nanoseconds = last;
        Ok(trace)
    }

    /// Appends a request as page operations: whole pages together, a partly covered page at either end by itself.
    fn append(&mut self, request: &TraceRequest) {
        let span = PageSpan::new(request.offset_bytes, request.size_bytes, self.page_bytes);
        let due_nanoseconds = request.nanoseconds;
        let mut push = |operation| self.operations.push(Operation { due_nanoseconds, ..operation });
        let pages =
            |kind, pages: Range<u64>| Operation::new(kind, 0, pages.start as u32, (pages.end - pages.start) as u32);
        let part = |part: PagePart| Operation::part(0, part.page as u32, part.size_bytes as u32);
        match request.kind {
            OperationKind::Flush => push(Operation::new(OperationKind::Flush, 0, 0, 0)),
            OperationKind::Read if request.size_bytes > 0 => {
                let first = request.offset_bytes / self.page_bytes;
                let end = (request.offset_bytes + request.size_bytes).div_ceil(self.page_bytes);
                push(pages(OperationKind::Read, first..end));
            }
            OperationKind::Trim if !span.whole.is_empty() => push(pages(OperationKind::Trim, span.whole)),
            OperationKind::Write | OperationKind::WritePart if request.size_bytes > 0 => {
                let whole = (!span.whole.is_empty()).then(|| pages(OperationKind::Write, span.whole));
                [span.head.map(part), whole, span.tail.map(part)].into_iter().flatten().for_each(push);
            }
            _ => {}
        }
    }
}

impl Workload for Trace {
    fn fill(&mut self, batch: &mut Vec<Operation>, count: usize) {
        for _ in 0..count {
            if self.next == self.operations.len() {
                if !self.repeat {
                    return;
                }
                self.next = 0;
                self.shift_nanoseconds = self.shift_nanoseconds.saturating_add(self.length_nanoseconds);
            }
            let operation = self.operations[self.next];
            self.next += 1;
            let due_nanoseconds = operation.due_nanoseconds.saturating_add(self.shift_nanoseconds);
            batch.push(Operation { due_nanoseconds, ..operation });
        }
    }

    fn memory_bytes(&self) -> usize {
        self.operations.capacity() * size_of::<Operation>()
    }
}

fn parse_csv(line: &str) -> std::result::Result<Option<TraceRequest>, String> {
    if line.trim().is_empty() {
        return Ok(None);
    }
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [seconds, operation, offset_bytes, size_bytes] = fields[..] else {
        return Err(format!("{} fields where seconds,operation,offset_bytes,size_bytes were expected", fields.len()));
    };
    let kind = match operation {
        "write" => OperationKind::Write,
        "read" => OperationKind::Read,
        "trim" => OperationKind::Trim,
        "flush" => OperationKind::Flush,
        other => return Err(format!("unknown operation {other:?}: use write, read, trim or flush")),
    };
    let number =
        |name: &str, text: &str| text.parse::<u64>().map_err(|_| format!("{name} {text:?} is not a whole number"));
    let seconds = seconds.parse::<f64>().ok().filter(|seconds| (0.0..SECONDS_MAX).contains(seconds));
    Ok(Some(TraceRequest {
        nanoseconds: (seconds.ok_or("seconds is not a number of seconds from 0")? * 1e9) as u64,
        kind,
        offset_bytes: number("offset_bytes", offset_bytes)?,
        size_bytes: number("size_bytes", size_bytes)?,
    }))
}

/// Parses a line such as `8,0 3 11 0.009507758 697 D WS 223490 + 8 [fio]`. Returns `None` for everything else that
/// `blkparse` prints, such as its summary.
fn parse_blkparse(line: &str, action: TraceAction) -> Option<TraceRequest> {
    let mut fields = line.split_ascii_whitespace();
    let seconds: f64 = fields.nth(3)?.parse().ok()?;
    let wanted = match action {
        TraceAction::Queued => "Q",
        TraceAction::Dispatched => "D",
    };
    if fields.nth(1)? != wanted {
        return None;
    }
    let flags = fields.next()?;
    let sector: u64 = fields.next().and_then(|sector| sector.parse().ok()).unwrap_or(0);
    let sectors: u64 = match fields.next() {
        Some("+") => fields.next()?.parse().ok()?,
        _ => 0,
    };
    let kind = match flags {
        _ if flags.contains('D') => OperationKind::Trim,
        _ if flags.contains('W') && sectors > 0 => OperationKind::Write,
        _ if flags.contains('R') => OperationKind::Read,
        _ if flags.contains('F') => OperationKind::Flush,
        _ => return None,
    };
    let nanoseconds = (seconds.clamp(0.0, SECONDS_MAX) * 1e9) as u64;
    Some(TraceRequest {
        nanoseconds,
        kind,
        offset_bytes: sector.checked_mul(SECTOR_BYTES)?,
        size_bytes: sectors.checked_mul(SECTOR_BYTES)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(text: &str) -> Result<Vec<(OperationKind, u32, u32)>> {
        let path = std::env::temp_dir().join(format!("cliffwatch-trace-{}-{}", std::process::id(), text.len()));
        std::fs::write(&path, text).unwrap();
        let trace = Trace::read(&path, TraceAction::Dispatched, false, 16384, 1000);
        std::fs::remove_file(&path).unwrap();
        let mut batch = Vec::new();
        trace?.fill(&mut batch, 100);
        Ok(batch.iter().map(|operation| (operation.kind, operation.page, operation.pages)).collect())
    }

    #[test]
    fn csv_requests_become_whole_pages_and_parts() {
        let text = "seconds,operation,offset_bytes,size_bytes\n0,write,0,32768\n0.5,write,4096,32768\n\
                    1,write,20480,4096\n2,trim,0,20000\n3,flush,0,0\n4,read,16000,1000\n";
        let expected = [
            (OperationKind::Write, 0, 2),
            (OperationKind::WritePart, 0, 1),
            (OperationKind::Write, 1, 1),
            (OperationKind::WritePart, 2, 1),
            (OperationKind::WritePart, 1, 1),
            (OperationKind::Trim, 0, 1),
            (OperationKind::Flush, 0, 0),
            (OperationKind::Read, 0, 2),
        ];
        assert_eq!(play(text).unwrap(), expected);
    }

    #[test]
    fn every_byte_that_was_written_is_counted_once() {
        let text = "seconds,operation,offset_bytes,size_bytes\n0,write,4096,32768\n1,write,20480,512\n2,read,0,16384\n";
        let mut batch = Vec::new();
        let path = Path::new("trace.csv");
        let mut trace = Trace::parse(text.as_bytes(), path, TraceAction::Dispatched, false, 16_384, 100).unwrap();
        trace.fill(&mut batch, 100);
        let written: Vec<u64> = batch.iter().map(|operation| operation.written_bytes(16_384)).collect();
        assert_eq!(written, [12_288, 16_384, 4096, 512, 0]);
    }

    #[test]
    fn blkparse_text_is_read_and_its_summary_passed_over() {
        let text = "  8,0    3       10     0.009500000   697  Q   W 64 + 32 [fio]\n\
                    \x20 8,0    3       11     0.009507758   697  D   W 64 + 32 [fio]\n\
                    \x20 8,0    1       12     0.010000000   697  D  FN [kworker]\n\
                    \x20 8,0    1       13     0.011000000   697  D  DS 0 + 64 [fstrim]\n\
                    CPU0 (8,0):\n Reads Queued:           0,        0KiB  Writes Queued: 1, 16KiB\n";
        assert_eq!(
            play(text).unwrap(),
            [(OperationKind::Write, 2, 1), (OperationKind::Flush, 0, 0), (OperationKind::Trim, 0, 2)]
        );
    }

    #[test]
    fn a_bad_line_is_named() {
        let error = play("seconds,operation,offset_bytes,size_bytes\n0,wriet,0,1\n").unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("wriet"), "{error}");
        let error = play("seconds,operation,offset_bytes,size_bytes\n0,write,99999999999,1\n").unwrap_err().to_string();
        assert!(error.contains("beyond the volume"), "{error}");
        assert!(play("hello").unwrap_err().to_string().contains("nothing to play"));
    }
}
