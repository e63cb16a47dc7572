//! Topic preparation before the load: creates or finds topics and checks them against the configuration.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::admin::{self, Metadata, Topic};
use crate::config::{Acks, Config, Topics};
use crate::error::{Error, Result, code, describe};
use crate::session::{Address, Dialer, Session};

/// Longest wait until all partitions have a leader.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(100);
/// Upper bound on the bytes that a batch of one record has besides the value.
const OVERHEAD_BYTES: usize = 100;

/// Creates topics where `topics.prefix` is given, waits until every partition has a leader, and checks their settings.
///
/// # Errors
/// `Error::Config` naming the setting that conflicts with a topic; `Error::Broker` with the broker's error.
pub(crate) fn prepare(config: &Config, dialer: &Dialer, bootstrap: &[Address]) -> Result<Metadata> {
    let mut session = dialer.open_any(bootstrap)?;
    session.speaks_hot_path()?;
    let names = config.topics.names();
    if config.topics.prefix.is_some() {
        make(&config.topics, &names, dialer, &mut session)?;
    }
    let metadata = wait_for_leaders(&mut session, &names)?;
    let mut is_first = true;
    for topic in &metadata.topics {
        if config.topics.prefix.is_some() {
            check_shape(&config.topics, topic)?;
        }
        // Topics created here have the same settings: checking one is enough.
        if is_first || config.topics.prefix.is_none() {
            check_settings(config, topic, &admin::topic_settings(&mut session, &topic.name)?)?;
        }
        is_first = false;
    }
    Ok(metadata)
}

fn make(topics: &Topics, names: &[String], dialer: &Dialer, session: &mut Session) -> Result<()> {
    let metadata = admin::metadata(session, &[])?;
    let mut at_controller = at_controller(&metadata, dialer, session);
    let session = at_controller.as_mut().unwrap_or(session);
    for name in names {
        admin::create_topic(session, name, topics, false)?;
    }
    Ok(())
}

/// Opens a session with the controller: older brokers create topics only there, newer ones forward the request. None
/// when `session` is with the controller already, or it cannot be reached.
pub(crate) fn at_controller(metadata: &Metadata, dialer: &Dialer, session: &Session) -> Option<Session> {
    match metadata.brokers.get(&metadata.controller) {
        Some(address) if address != session.address() => dialer.open(address).ok(),
        _ => None,
    }
}

fn wait_for_leaders(session: &mut Session, names: &[String]) -> Result<Metadata> {
    let since = Instant::now();
    loop {
        let metadata = admin::metadata(session, names)?;
        let fault = metadata.topics.iter().find_map(|topic| {
            let is_led = !topic.partitions.is_empty() && topic.partitions.values().all(|(leader, _)| *leader >= 0);
            let error = if topic.error == code::NONE && !is_led { 5 } else { topic.error };
            (error != code::NONE).then(|| (topic.name.clone(), error))
        });
        let Some((name, error)) = fault else { return Ok(metadata) };
        if since.elapsed() > PATIENCE {
            let advice = "is it spelt as the broker has it, and are its brokers up?".to_owned();
            return Err(Error::Broker { doing: format!("looking for topic {name}"), name: describe(error).0, advice });
        }
        if error == code::UNKNOWN_TOPIC_OR_PARTITION && since.elapsed() > PATIENCE / 6 {
            let advice = "make it, or give topics.prefix instead of topics.existing".to_owned();
            return Err(Error::Broker { doing: format!("looking for topic {name}"), name: describe(error).0, advice });
        }
        std::thread::sleep(LOOK);
    }
}

/// Checks partition count and replication factor, which differ if the topic existed before.
fn check_shape(topics: &Topics, topic: &Topic) -> Result<()> {
    let name = &topic.name;
    let remedy = "delete it, ask for what it has, or choose another topics.prefix";
    let partitions = topic.partitions.len();
    if partitions != topics.partitions as usize {
        return Err(Error::Config(format!(
            "topics.partitions: topic {name} is there already and has {partitions} partitions; {remedy}"
        )));
    }
    if let Some(wanted) = topics.replication_factor
        && let Some((_, replicas)) = topic.partitions.values().find(|(_, replicas)| *replicas != wanted as usize)
    {
        return Err(Error::Config(format!(
            "topics.replication_factor: topic {name} is there already and has {replicas} replicas; {remedy}"
        )));
    }
    Ok(())
}

/// Checks settings, record and batch sizes and acks against the settings that the topic has.
///
/// # Errors
/// `Error::Config` naming the setting that conflicts.
pub(crate) fn check_settings(config: &Config, topic: &Topic, settings: &BTreeMap<String, String>) -> Result<()> {
    let name = &topic.name;
    if config.topics.prefix.is_some() {
        for (setting, wanted) in &config.topics.settings {
            if let Some(found) = settings.get(setting)
                && found != wanted
            {
                return Err(Error::Config(format!(
                    "topics.settings: topic {name} is there already and has {setting}={found}; delete it, ask for \
                     what it has, or choose another topics.prefix"
                )));
            }
        }
    }
    let Some(producer) = &config.producer else { return Ok(()) };
    let number = |setting: &str| settings.get(setting).and_then(|text| text.parse::<usize>().ok());
    if let Some(limit) = number("max.message.bytes") {
        let largest = producer.record_sizes.iter().map(|size| size.size_bytes).max().unwrap_or(0);
        if largest + OVERHEAD_BYTES > limit {
            return Err(Error::Config(format!(
                "producer.record_sizes: topic {name} takes batches of max.message.bytes={limit} at most, and one record \
                 is {largest} bytes: MESSAGE_TOO_LARGE"
            )));
        }
        if producer.batch_size_bytes > limit {
            return Err(Error::Config(format!(
                "producer.batch_size_bytes: topic {name} takes batches of max.message.bytes={limit} at most: \
                 MESSAGE_TOO_LARGE"
            )));
        }
    }
    let replicas = topic.partitions.values().map(|(_, replicas)| *replicas).min().unwrap_or(0);
    if let Some(in_sync) = number("min.insync.replicas")
        && producer.acks == Acks::All
        && in_sync > replicas
    {
        return Err(Error::Config(format!(
            "topics.replication_factor: topic {name} has {replicas} replicas and min.insync.replicas={in_sync}, so \
             nothing could be written with acks \"all\": NOT_ENOUGH_REPLICAS"
        )));
    }
    Ok(())
}

/// Deletes all topics of the configuration; to be called only for topics that were created for the load.
///
/// # Errors
/// `Error::Broker` with the broker's error; `Error::Unreachable` when no server answers.
pub(crate) fn remove(config: &Config, dialer: &Dialer, bootstrap: &[Address]) -> Result<()> {
    let mut session = dialer.open_any(bootstrap)?;
    admin::delete_topics(&mut session, &config.topics.names())
}
