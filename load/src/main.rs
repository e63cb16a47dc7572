//! `cliffwatch-load`: the load generators in one program, a subcommand each.

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// Load generators that measure from due times and print one JSON object for each window.
#[derive(Parser)]
#[command(version, max_term_width = 120)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Do to a file system what log-structured brokers do
    ///
    /// The configuration is a JSON document; docs/engines/storage.md explains it. On SIGTERM the window in progress is
    /// printed and the load ends; on SIGUSR1 a sample of the records is read back while it goes on.
    Storage {
        /// What to do
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// Only write what is to be there before the load begins
        #[arg(long)]
        prepare: bool,
        /// Only print, as JSON, how files would be written here: through io_uring or not, and why not
        #[arg(long, conflicts_with = "prepare")]
        try_io: bool,
    },
    /// Produce to and consume from a Kafka broker
    ///
    /// The configuration is a JSON document; docs/engines/kafka.md explains it. On SIGTERM the load ends, what was sent is
    /// waited for and read, and the window in progress is printed.
    Kafka {
        /// What to do
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// Only make the topics that are to be there before the load begins, and check that they are as asked for
        #[arg(long)]
        prepare: bool,
        /// Only ask the brokers whether the load could begin, and print what they say as JSON; nothing is changed
        #[arg(long, conflicts_with = "prepare")]
        check: bool,
    },
    /// Read back the records in a directory that a storage load has left, and print what was found as JSON
    ///
    /// The exit status is 0 when every record was there, once, in order and unchanged.
    Verify {
        /// The directory
        directory: PathBuf,
        /// Read at most so many bytes, chosen by chance
        #[arg(long)]
        bytes: Option<u64>,
    },
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Storage { config, try_io: true, .. } => match cliffwatch_storage::try_io(&config) {
            Ok(found) => {
                println!("{found}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("cliffwatch-load: {error}");
                ExitCode::from(cliffwatch_storage::BAD_INPUT)
            }
        },
        Command::Storage { config, prepare, .. } => ExitCode::from(cliffwatch_storage::storage(&config, prepare)),
        Command::Kafka { config, check: true, .. } => ExitCode::from(cliffwatch_kafka::check(&config)),
        Command::Kafka { config, prepare, .. } => ExitCode::from(cliffwatch_kafka::kafka(&config, prepare)),
        Command::Verify { directory, bytes } => match cliffwatch_storage::verify_directory(&directory, bytes) {
            Ok((report, clean)) => {
                println!("{report}");
                if clean { ExitCode::SUCCESS } else { ExitCode::from(cliffwatch_storage::FAILED) }
            }
            Err(error) => {
                eprintln!("cliffwatch-load: {error}");
                ExitCode::from(cliffwatch_storage::BAD_INPUT)
            }
        },
    }
}
