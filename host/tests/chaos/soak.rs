//! A soak test in random steps: messages, kills, stops, clock changes, rotations, and a restore of the home from a copy.
//!
//! Each run prints its seed, and `IRONCLAW_SEED` repeats the run. `IRONCLAW_SOAK_STEPS` sets its length. See `kill`.
#![allow(clippy::print_stdout)] // the printed seed repeats a failed run

use crate::chaos::kill::{Sent, all_answered_once, answered, retry, run_settings};
use crate::support::client::Client;
use crate::support::host_fixture::{Build, TestHost, copy_with_owners, kill, wait_for};
use fastrand::Rng;

/// The number of steps without `IRONCLAW_SOAK_STEPS`.
const STEPS: u64 = 100;

const HOUR_MS: i64 = 3_600_000;

/// A copy of the home, with the number of messages at that moment.
struct Snapshot {
    directory: tempfile::TempDir,
    /// The exported entries of the ledger, which must not change later.
    ledger: Vec<String>,
    sent: usize,
}

/// A host with a settable clock, and a directory for heads outside of its home.
struct Soak {
    host: TestHost,
    client: Client,
    heads: tempfile::TempDir,
    sent: Vec<Sent>,
    events: u64,
    snapshot: Option<Snapshot>,
    /// True if a head outside names entries that the home lost.
    lost: bool,
}

impl Soak {
    fn begin() -> Self {
        let host = TestHost::own(Build::Failpoints);
        let heads = tempfile::tempdir().expect("a directory");
        host.configure(&format!(
            "[ledger]\nheads = {:?}\nrotate_entries = 64\nhead_every_entries = 8\nhead_every_seconds = 2\n[session]\nidle_seconds = 1\n",
            heads.path().display().to_string()
        ));
        host.up();
        host.agent("a");
        host.agent("b");
        let client = Client::of(&host);
        Self { host, client, heads, sent: Vec::new(), events: 0, snapshot: None, lost: false }
    }

    /// Sends one message. Waits for its answer in half of the cases.
    fn send_message(&mut self, rng: &mut Rng) {
        let agent = if rng.u64(..2) == 0 { "a" } else { "b" };
        self.events += 1;
        let text = match rng.u64(..3) {
            0 => format!("write file-{}.txt: content", self.events),
            1 => format!("append log-{}.txt: content", self.events),
            _ => format!("echo word-{}", self.events),
        };
        let event = format!("event-{}", self.events);
        let taken = retry("take a message", || self.client.send(agent, &text, &event));
        let id = taken["message_id"].as_str().expect("an id").to_owned();
        if rng.u64(..2) == 0 {
            retry("answer a message", || answered(&self.client, &id));
        }
        self.sent.push(Sent { text, id });
    }

    fn wait_for_answers(&self) {
        for message in &self.sent {
            retry("answer a message", || answered(&self.client, &message.id));
        }
    }
    fn up_at(&mut self, shift_ms: i64) {
        self.host.set_env("IRONCLAW_CLOCK_SHIFT_MS", Some(&shift_ms.to_string()));
        self.host.up();
    }

    fn take_snapshot(&mut self) {
        self.wait_for_answers();
        self.host.down();
        let directory = tempfile::tempdir().expect("a directory");
        copy_with_owners(&self.host.home, &directory.path().join("home"));
        let ledger = self.entries();
        self.snapshot = Some(Snapshot { directory, ledger, sent: self.sent.len() });
        self.host.up();
    }
    fn restore(&mut self) {
        let Some(snapshot) = self.snapshot.take() else { return };
        self.wait_for_answers();
        if self.sent.len() > snapshot.sent {
            // A kill directly after an answer can come before the next head outside, and then the host could not warn.
            wait_for("a head outside", || self.has_head_outside(snapshot.ledger.len()));
        }
        self.host.kill_host();
        let before = self.verify();
        assert!(before.is_ok() || self.lost, "{before:?}");
        for entry in std::fs::read_dir(&self.host.home).expect("a home") {
            let path = entry.expect("readable").path();
            if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) }.expect("removed");
        }
        let kept = snapshot.directory.path().join("home");
        for entry in std::fs::read_dir(&kept).expect("a copy") {
            let path = entry.expect("readable").path();
            copy_with_owners(&path, &self.host.home.join(path.file_name().expect("a name")));
        }
        let forgotten = self.sent.len() - snapshot.sent;
        self.sent.truncate(snapshot.sent);
        // The older ledger is valid in itself. The heads outside reveal the first lost entry.
        assert!(self.entries() == snapshot.ledger, "the restored ledger equals the copied one");
        self.check_chains();
        if !self.lost {
            match self.verify() {
                // Since the copy no message was sent and no head was signed.
                Ok(_) => assert_eq!(forgotten, 0, "the heads outside do not reveal the lost messages"),
                Err(said) => {
                    let first = snapshot.ledger.len();
                    assert!(said.contains(&format!("bad seq {first}")), "the first lost entry is {first}: {said}");
                    self.lost = true;
                }
            }
        }
        self.host.up();
        if forgotten > 0 {
            let warned = || self.host.status()["host"]["warnings"].to_string();
            wait_for("the host to notice", || warned().contains("know another history from entry"));
            assert!(!self.host.entries("ledger.behind_heads").is_empty());
        }
    }

    /// Returns whether a head outside of the home covers this entry.
    fn has_head_outside(&self, entry: usize) -> bool {
        let files = std::fs::read_dir(self.heads.path()).expect("a directory");
        let texts = files.filter_map(|file| std::fs::read_to_string(file.expect("readable").path()).ok());
        let heads: Vec<String> = texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
        let numbers = heads.iter().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        numbers.filter_map(|head| head["seq"].as_u64()).any(|seq| seq >= entry as u64)
    }

    /// Returns the exported entries without the final head, which each export signs again.
    fn entries(&self) -> Vec<String> {
        let exported = self.host.ctl(&["audit", "export"]).ok().stdout;
        exported.lines().filter(|line| line.starts_with(r#"{"seq":"#)).map(str::to_owned).collect()
    }

    /// Verifies the ledger against the heads outside.
    fn verify(&self) -> Result<String, String> {
        let answer = self.host.ctl(&["audit", "verify"]);
        if answer.code == 0 { Ok(answer.stdout) } else { Err(answer.stdout + &answer.stderr) }
    }

    /// Verifies all chains of the ledger and their links, without the heads outside.
    fn check_chains(&self) {
        let file = self.heads.path().join("exported.jsonl");
        std::fs::write(&file, self.host.ctl(&["audit", "export"]).ok().stdout).expect("written");
        let shown = file.display().to_string();
        self.host.ctl(&["audit", "verify", "--file", &shown]).ok();
        std::fs::remove_file(&file).expect("removed");
    }

    fn rotate(&self) {
        let answer = self.host.ctl(&["audit", "rotate"]);
        if !answer.stderr.contains("holds nothing but its genesis") {
            answer.ok();
        }
    }

    fn kill_a_sandbox(&self) {
        let status = self.host.status();
        let sessions = status["sessions"].as_array().expect("a list").iter();
        if let Some(pid) = sessions.filter_map(|session| session["pid"].as_i64()).next() {
            kill(pid as i32);
        }
    }
}

#[test]
fn soak_loses_no_message_and_keeps_the_ledger_valid() {
    let (seed, steps) = run_settings("IRONCLAW_SOAK_STEPS", STEPS);
    let (mut soak, mut rng) = (Soak::begin(), Rng::with_seed(seed));
    for step in 0..steps {
        let what = rng.u64(..16);
        println!("step {step}: {what}");
        match what {
            0..=7 => soak.send_message(&mut rng),
            8 => {
                soak.host.kill_host();
                soak.host.up();
            }
            9 => soak.kill_a_sandbox(),
            10 => {
                soak.host.down();
                soak.up_at(0);
            }
            11 => {
                soak.host.kill_host();
                soak.up_at(-HOUR_MS);
            }
            12 => {
                soak.host.kill_host();
                soak.up_at(40 * 24 * HOUR_MS);
            }
            13 => soak.rotate(),
            14 => soak.take_snapshot(),
            _ => soak.restore(),
        }
    }
    soak.wait_for_answers();
    soak.sent.sort_by(|a, b| a.id.cmp(&b.id));
    all_answered_once(&soak.host, &soak.sent, seed);
    soak.check_chains();
    assert_eq!(soak.verify().is_err(), soak.lost, "seed {seed}: {:?}", soak.verify());
    // Every run has at least one rotation and one restore.
    soak.take_snapshot();
    soak.rotate();
    soak.send_message(&mut rng);
    soak.restore();
    assert!(soak.lost, "seed {seed}");
    soak.wait_for_answers();
    all_answered_once(&soak.host, &soak.sent, seed);
    soak.check_chains();
    assert!(soak.verify().is_err(), "seed {seed}: the heads outside still reveal the loss");
    soak.host.down();
}
