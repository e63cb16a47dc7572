//! Output of the engine contract: lines of JSON to standard output or another writer.

use crate::clock::{Clock, seconds};
use crate::error::Result;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// Line writer. Copies write to the same destination, a whole line at a time.
#[derive(Clone)]
pub struct Output {
    writer: Arc<Mutex<dyn Write + Send>>,
    clock: Clock,
}

impl Output {
    /// Creates an output that writes to `writer`; events carry the time of `clock`.
    pub fn new(writer: impl Write + Send + 'static, clock: Clock) -> Self {
        Self { writer: Arc::new(Mutex::new(writer)), clock }
    }

    /// Writes an event line with the present time.
    pub fn event(&self, name: &str, detail: Value) -> Result<()> {
        self.line(&json!({"type": "event", "at": seconds(self.clock.now()), "name": name, "detail": detail}))
    }

    /// Writes the last line of an engine that completed.
    pub fn completed(&self) -> Result<()> {
        self.line(&json!({"type": "end", "status": "completed"}))
    }

    /// Writes the last line of an engine that failed.
    pub fn failed(&self, message: &str) -> Result<()> {
        self.line(&json!({"type": "end", "status": "failed", "message": message}))
    }

    /// Writes the last line of an engine that failed and should not be restarted, because it would fail again.
    pub fn failed_for_good(&self, message: &str) -> Result<()> {
        self.line(&json!({"type": "end", "status": "failed", "message": message, "restart": false}))
    }

    pub(crate) fn line(&self, value: &Value) -> Result<()> {
        let mut text = value.to_string();
        text.push('\n');
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.write_all(text.as_bytes())?;
        Ok(writer.flush()?)
    }
}
