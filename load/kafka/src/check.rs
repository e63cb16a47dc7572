//! Preflight check of a load: reachable servers and brokers, and whether the topics can be used. Changes nothing.

use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::admin;
use crate::config::Config;
use crate::error::{Error, Result, code, describe};
use crate::run::{BAD_INPUT, COMPLETED, connections};
use crate::session::{Address, Dialer, Session};
use crate::topics;

/// Timeout of each connection attempt and response; short, because the caller waits for the result.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Runs the preflight check and prints one JSON object: `servers` and `brokers`, each with its `address` and `fault`
/// (null when it answers), and `faults`, the problems with the topics. Exit status 2 for an invalid configuration.
#[must_use]
pub fn check(path: &Path) -> u8 {
    match Config::load(path).and_then(|config| look(&config)) {
        Ok(found) => {
            println!("{found}");
            COMPLETED
        }
        Err(error) => {
            eprintln!("{error}");
            BAD_INPUT
        }
    }
}

fn look(config: &Config) -> Result<Value> {
    let (dialer, bootstrap) = connections(config, TIMEOUT)?;
    let answers = ask(&dialer, &bootstrap);
    let servers: Vec<Value> =
        bootstrap.iter().zip(&answers).map(|(address, answer)| answer_of(address, answer)).collect();
    let Some(mut session) = answers.into_iter().find_map(Result::ok) else {
        return Ok(json!({"servers": servers, "brokers": [], "faults": []}));
    };
    let mut faults = Vec::new();
    let mut brokers = Vec::new();
    match admin::metadata(&mut session, &config.topics.existing) {
        Ok(metadata) => {
            let addresses: Vec<Address> = metadata.brokers.values().cloned().collect();
            brokers =
                addresses.iter().zip(ask(&dialer, &addresses)).map(|(each, answer)| answer_of(each, &answer)).collect();
            faults.extend(topic_faults(config, &dialer, session, &metadata));
        }
        Err(error) => faults.push(error.to_string()),
    }
    Ok(json!({"servers": servers, "brokers": brokers, "faults": faults}))
}

/// Opens sessions to all addresses in parallel, so that several unreachable ones cost one timeout.
fn ask(dialer: &Dialer, addresses: &[Address]) -> Vec<Result<Session>> {
    thread::scope(|scope| {
        let asked: Vec<_> = addresses.iter().map(|address| scope.spawn(|| dialer.open(address))).collect();
        let unanswered = || Err(Error::Protocol("connecting"));
        asked.into_iter().map(|thread| thread.join().unwrap_or_else(|_| unanswered())).collect()
    })
}

fn answer_of(address: &Address, answer: &Result<Session>) -> Value {
    let fault = answer.as_ref().err().map(ToString::to_string);
    json!({"address": address.to_string(), "fault": fault})
}

/// Problems that would prevent creating or using the topics, one text each.
fn topic_faults(config: &Config, dialer: &Dialer, mut session: Session, metadata: &admin::Metadata) -> Vec<String> {
    let mut faults = Vec::new();
    faults.extend(session.speaks_hot_path().err().map(|error| error.to_string()));
    for topic in &metadata.topics {
        let is_led = !topic.partitions.is_empty() && topic.partitions.values().all(|(leader, _)| *leader >= 0);
        if topic.error != code::NONE {
            faults.push(format!("topics.existing: {}: the broker says {}", topic.name, describe(topic.error).0));
        } else if !is_led {
            faults.push(format!("topics.existing: {}: a partition has no leader", topic.name));
        } else {
            let settings = admin::topic_settings(&mut session, &topic.name);
            let fault = settings.and_then(|settings| topics::check_settings(config, topic, &settings)).err();
            faults.extend(fault.map(|error| error.to_string()));
        }
    }
    // Topics to be created are alike: the broker validates the first of them without creating it.
    if config.topics.prefix.is_some()
        && let Some(name) = config.topics.names().first()
    {
        let mut session = topics::at_controller(metadata, dialer, &session).unwrap_or(session);
        let fault = admin::create_topic(&mut session, name, &config.topics, true).err();
        faults.extend(fault.map(|error| error.to_string()));
    }
    faults
}
