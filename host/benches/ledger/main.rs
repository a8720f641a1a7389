//! The times of the ledger: durable appends one by one and in groups, and the verification of a million entries compared with the
//! same hashing without storage.
//!
//! Asserts no time: a noisy machine fails no bench, and only the ratios of one run are meaningful. See `docs/performance.md`.
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

#[path = "../round/figures.rs"]
#[allow(dead_code)]
mod figures;

use figures::{Report, Samples};
use ironclaw_contract::canonical;
use ironclaw_contract::ids::{MessageId, SessionId};
use ironclaw_contract::ledger_entry::{GENESIS_PREV, Kind, hash};
use ironclaw_host::daemon;
use ironclaw_host::daemon::audit;
use ironclaw_host::driven::HeadPublisher;
use ironclaw_ledger::sink::Sink;
use ironclaw_ledger::{Config, Entry, archive};
use ironclaw_operator::LedgerEvent;
use ironclaw_state::State;
use ironclaw_state::home::Home;
use ironclaw_state::keys::MasterKey;
use std::path::Path;
use std::time::Instant;

/// Sequential appends, one sample each.
const SINGLE: usize = 2_000;
/// Appends of one grouped sample, and the number of concurrent tasks.
const GROUPED: usize = 20_000;
const AT_ONCE: usize = 256;
/// Grouped samples, and samples of each verification.
const TIMES: usize = 5;
/// Entries of the verified ledger.
const ENTRIES: usize = 1_000_000;
/// Entries of one transaction while that ledger is made.
const BATCH: usize = 2_000;

fn main() {
    let mut report = Report::default();
    let directory = tempfile::Builder::new().prefix("ledger").tempdir_in(std::env::current_dir().expect("a directory"));
    let directory = directory.expect("a temporary directory on a real file system");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    append(&mut report, &runtime, &directory.path().join("append"));
    // First with the default rotation, then as one chain in the database.
    verify(&mut report, &runtime, &directory.path().join("rotated"), "rotated", 10_000);
    verify(&mut report, &runtime, &directory.path().join("live"), "live", 10_000_000);
    report.print();
}

fn open(path: &Path) -> (Home, MasterKey, State) {
    daemon::init(path).expect("a home");
    let home = Home::open(path).expect("a home");
    let master = MasterKey::load(&home, &Default::default()).expect("a key");
    let state = State::open(&home.state_db(), &master.state_key()).expect("the state");
    (home, master, state)
}

/// Returns a typical entry.
fn entry() -> Entry {
    let session = SessionId::new();
    let digest = canonical::Digest::of(session.to_string().as_bytes()).to_string();
    Entry::new(LedgerEvent::MessageRecorded)
        .session(session)
        .message(MessageId::new())
        .with("digest", digest)
        .with("channel", "loopback")
}

fn append(report: &mut Report, runtime: &tokio::runtime::Runtime, path: &Path) {
    let (_, _, state) = open(path);
    runtime.block_on(async {
        let one = async || state.write(|tx| entry().append(tx)).await.expect("appended");
        for _ in 0..200 {
            one().await;
        }
        let mut single = Samples::default();
        for _ in 0..SINGLE {
            let begun = Instant::now();
            one().await;
            single.push(begun.elapsed().as_secs_f64());
        }
        report.times("append_single", "append, durable, one by one", &single);
        report.rate("append_single_per_s", "… a second", 1.0 / single.mean());
        let mut grouped = Samples::default();
        for _ in 0..TIMES {
            let begun = Instant::now();
            let tasks: Vec<_> = (0..AT_ONCE)
                .map(|_| {
                    let state = state.clone();
                    tokio::spawn(async move {
                        for _ in 0..GROUPED / AT_ONCE {
                            state.write(|tx| entry().append(tx)).await.expect("appended");
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.expect("no panic");
            }
            grouped.push(begun.elapsed().as_secs_f64() / (GROUPED / AT_ONCE * AT_ONCE) as f64);
        }
        report.times("append_grouped", "append, durable, 256 waiting, each", &grouped);
        report.rate("append_grouped_per_s", "… a second", 1.0 / grouped.p50());
        state.close().await;
    });
}

fn verify(report: &mut Report, runtime: &tokio::runtime::Runtime, path: &Path, name: &str, rotate: u64) {
    let entries = fill(runtime, path, rotate);
    let bare = bare(path);
    let evidence = audit::Evidence::default();
    let (mut hashed, mut verified, mut decrypted) = (Samples::default(), Samples::default(), Samples::default());
    // Alternating, so that a slow minute of the machine affects both.
    for _ in 0..TIMES {
        let begun = Instant::now();
        assert_eq!(hash_only(&bare), bare.len());
        hashed.push(begun.elapsed().as_secs_f64());
        let begun = Instant::now();
        let whole = audit::verify(path, &evidence).expect("it is whole");
        verified.push(begun.elapsed().as_secs_f64());
        assert_eq!(whole.entries, entries);
        if whole.chains == 1 {
            let begun = Instant::now();
            assert_eq!(decrypt_only(path), entries);
            decrypted.push(begun.elapsed().as_secs_f64());
        }
    }
    report.times(&format!("hash_{name}"), &format!("{entries} entries, hashing alone, one thread"), &hashed);
    report.times(&format!("verify_{name}"), &format!("{entries} entries verified ({name})"), &verified);
    report.rate(&format!("verify_{name}_per_s"), "… entries a second", entries as f64 / verified.p50());
    report.ratio(&format!("verify_{name}_ratio"), "… to hashing alone", verified.p50() / hashed.p50());
    if decrypted.len() > 0 {
        report.times(&format!("decrypt_{name}"), &format!("{entries} entries, reading alone, one thread"), &decrypted);
        report.ratio(&format!("decrypt_{name}_ratio"), "… to hashing alone", decrypted.p50() / hashed.p50());
        report.ratio(
            &format!("verify_{name}_to_decrypt"),
            "… verified to reading alone",
            verified.p50() / decrypted.p50(),
        );
    }
}

/// Fills a ledger and returns its number of entries.
fn fill(runtime: &tokio::runtime::Runtime, path: &Path, rotate: u64) -> u64 {
    let (home, master, state) = open(path);
    runtime.block_on(async {
        let config = Config { rotate_entries: u64::MAX, ..Config::default() };
        let sink = Sink::None("a bench");
        let (head_publisher, _) = HeadPublisher::start(&state, &home, &config, sink, master.wrapping_key(), |_| Ok(()))
            .await
            .expect("a publisher");
        let (mut next, mut first) = (0, 0);
        while next < ENTRIES as u64 {
            let append = |tx: &mut ironclaw_state::WriteTx<'_>| {
                let mut last = 0;
                for _ in 0..BATCH {
                    last = entry().append(tx)?;
                }
                Ok::<_, ironclaw_state::Error>(last)
            };
            next = state.write(append).await.expect("appended") + 1;
            if next - first >= rotate {
                first = head_publisher.rotate(archive::RotationReason::Entries).await.expect("rotated").last + 1;
                next = first + 1;
            }
        }
        head_publisher.stop().await;
        state.close().await;
        next
    })
}

/// Returns the entries of a ledger as bytes to hash.
fn bare(path: &Path) -> Vec<(Kind, String)> {
    let mut export = Vec::new();
    audit::export(path, &mut export).expect("exported");
    let text = String::from_utf8(export).expect("text");
    let entries = text.lines().filter_map(|line| match ironclaw_ledger::line::parse(line)? {
        ironclaw_ledger::line::Line::Entry(parts) => {
            Some((parts.kind.parse().expect("a kind"), parts.canonical.to_owned()))
        }
        ironclaw_ledger::line::Line::Head(_) => None,
    });
    entries.collect()
}

/// Does the minimal reading of a verification of the live chain: authenticates and decrypts each page.
fn decrypt_only(path: &Path) -> u64 {
    let home = Home::open(path).expect("a home");
    let master = MasterKey::load(&home, &Default::default()).expect("a key");
    let db = ironclaw_state::open_to_look(&home.state_db(), &master.state_key()).expect("the state");
    let entries = db.query_row("SELECT count(length(data)) FROM ledger", [], |row| row.get::<_, i64>(0));
    entries.expect("read") as u64
}

/// Does the minimal hashing of a verification.
fn hash_only(entries: &[(Kind, String)]) -> usize {
    let mut prev = GENESIS_PREV.to_owned();
    for (seq, (kind, canonical)) in entries.iter().enumerate() {
        prev = hash(&prev, seq as u64, *kind, canonical).to_string();
    }
    std::hint::black_box(prev);
    entries.len()
}
