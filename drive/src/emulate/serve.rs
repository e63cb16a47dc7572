//! HTTP server of the drive: GET `/metrics`, `/health`, `/latencies` and `/faults`, PUT `/faults` to inject faults,
//! DELETE `/latencies` and `/faults` to reset them.

use super::faults::Faults;
use super::filesystem::DriveState;
use super::health::{Health, Thermometer};
use crate::sync::lock;
use serde_json::json;
use std::io::Read;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tiny_http::{Header, Method, Request, Response, Server};

/// Labels of the drive in its metrics, and the constants that its health is computed from.
pub struct DriveIdentity {
    /// Label `device` of the metrics.
    pub device: String,
    /// Label `serial` of the metrics.
    pub serial: String,
    /// Bytes per page.
    pub page_bytes: u64,
    /// Program bandwidth of the flash, in bytes per second.
    pub program_bytes_per_second: f64,
}

/// Largest part of a request's body that is read, in bytes. Faults are a few hundred bytes.
const LARGEST_BODY_BYTES: u64 = 64 << 10;

/// Starts the server in its own thread, which runs until the process ends. Returns the address, with the chosen port if
/// port 0 was given.
///
/// # Errors
/// The system's error, if it cannot listen on the address or start the thread.
pub fn start(address: &str, shared: Arc<DriveState>, identity: DriveIdentity) -> std::io::Result<SocketAddr> {
    let server = Server::http(address).map_err(std::io::Error::other)?;
    let bound = server.server_addr().to_ip().ok_or_else(|| std::io::Error::other("not an IP address"))?;
    let media_bytes = lock(&shared.layer).counters().media_pages() * identity.page_bytes;
    let thermometer = Mutex::new(Thermometer::new(media_bytes));
    std::thread::Builder::new().name("http".into()).spawn(move || {
        for request in server.incoming_requests() {
            // A reply that cannot be sent is ignored.
            let _ = answer(request, &shared, &identity, &thermometer);
        }
    })?;
    Ok(bound)
}

fn answer(
    mut request: Request,
    shared: &DriveState,
    identity: &DriveIdentity,
    thermometer: &Mutex<Thermometer>,
) -> std::io::Result<()> {
    let method = request.method().clone();
    let (status, kind, body) = match (&method, request.url()) {
        (Method::Get, "/metrics") => {
            (200, "text/plain; version=0.0.4", with_health(shared, identity, thermometer, |health| health.exposition()))
        }
        (Method::Get, "/health") => {
            let log = with_health(shared, identity, thermometer, |health| health.smart_log().to_string());
            (200, "application/json", log)
        }
        (Method::Get, "/latencies") => (200, "application/json", shared.requests.latencies().to_string()),
        (Method::Delete, "/latencies") => {
            shared.requests.forget_latencies();
            (200, "application/json", "{}".into())
        }
        (Method::Get, "/faults") => (200, "application/json", json!(lock(&shared.faults).0).to_string()),
        (Method::Put, "/faults") => {
            let mut body = Vec::new();
            request.as_reader().take(LARGEST_BODY_BYTES).read_to_end(&mut body)?;
            set_faults(shared, Faults::parse(&body))
        }
        (Method::Delete, "/faults") => set_faults(shared, Ok(Faults::default())),
        _ => problem(
            404,
            "not-found",
            "there are GET /metrics, /health, /latencies and /faults, PUT /faults, and DELETE /latencies and /faults",
        ),
    };
    let mut response = Response::from_string(body).with_status_code(status);
    if let Ok(header) = Header::from_bytes("Content-Type", kind) {
        response.add_header(header);
    }
    request.respond(response)
}

fn set_faults(shared: &DriveState, faults: Result<Faults, String>) -> (u16, &'static str, String) {
    match faults {
        Ok(faults) => {
            let body = json!(faults).to_string();
            if let Err(error) = shared.power.set(faults.power_cut.as_ref(), &shared.backing) {
                return problem(500, "content-lost", &format!("the backing file cannot be changed: {error}"));
            }
            *lock(&shared.faults) = (faults, Instant::now());
            (200, "application/json", body)
        }
        Err(detail) => problem(400, "invalid-faults", &detail),
    }
}

fn problem(status: u16, code: &str, detail: &str) -> (u16, &'static str, String) {
    (status, "application/problem+json", json!({"status": status, "code": code, "detail": detail}).to_string())
}

fn with_health<T>(
    shared: &DriveState,
    identity: &DriveIdentity,
    thermometer: &Mutex<Thermometer>,
    read: impl FnOnce(&Health) -> T,
) -> T {
    let (counters, host_bytes, clean_ratio, mapped_ratio, total_blocks) = {
        let layer = lock(&shared.layer);
        (layer.counters(), layer.host_bytes(), layer.clean_ratio(), layer.mapped_ratio(), layer.total_blocks())
    };
    let media_bytes = counters.media_pages() * identity.page_bytes;
    let measured = lock(thermometer).measure(shared.started.elapsed(), media_bytes, identity.program_bytes_per_second);
    let (faulty, read_only) = {
        let (faults, _) = &*lock(&shared.faults);
        (faults.temperature_celsius, faults.read_only)
    };
    read(&Health {
        device: &identity.device,
        serial: &identity.serial,
        counters,
        host_bytes,
        page_bytes: identity.page_bytes,
        clean_ratio,
        mapped_ratio,
        total_blocks,
        temperature_celsius: faulty.unwrap_or(measured),
        read_only,
        requests: &shared.requests,
    })
}
