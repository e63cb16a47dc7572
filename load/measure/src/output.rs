//! The lines of the engine contract, on standard output or wherever else.

use crate::clock::{Clock, seconds};
use crate::error::Result;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// Where lines go. Copies write to the same place, a whole line at a time.
#[derive(Clone)]
pub struct Output {
    writer: Arc<Mutex<dyn Write + Send>>,
    clock: Clock,
}

impl Output {
    /// Lines go to `writer`; events carry the time of `clock`.
    pub fn new(writer: impl Write + Send + 'static, clock: Clock) -> Self {
        Self { writer: Arc::new(Mutex::new(writer)), clock }
    }

    /// Something happened now.
    pub fn event(&self, name: &str, detail: Value) -> Result<()> {
        self.line(&json!({"type": "event", "at": seconds(self.clock.now()), "name": name, "detail": detail}))
    }

    /// The last line of an engine that did what it was asked to.
    pub fn completed(&self) -> Result<()> {
        self.line(&json!({"type": "end", "status": "completed"}))
    }

    /// The last line of an engine that cannot go on.
    pub fn failed(&self, message: &str) -> Result<()> {
        self.line(&json!({"type": "end", "status": "failed", "message": message}))
    }

    /// The last line of an engine that cannot go on, where another one in its place would fail likewise.
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
