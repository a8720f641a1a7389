//! What weeks bring, in a random order: talk, deaths, stops, a clock that is set, rotations, and a home that is put back to
//! what it was.
//!
//! A run is repeated with the seed that it prints (`IRONCLAW_SEED`), and made longer with `IRONCLAW_WEEKS`. Next: `moments`.
#![allow(clippy::print_stdout)] // the seed of a run that failed is what repeats it

use crate::chaos::kill::{Sent, all_answered_once, answered, insist, run_of};
use crate::support::client::{self, Client};
use crate::support::host_fixture::{Build, World, copy_as_is, kill, wait_for};
use fastrand::Rng;

/// Steps of one run, unless `IRONCLAW_WEEKS` says otherwise.
const STEPS: u64 = 100;

const HOUR_MS: i64 = 3_600_000;

/// A copy of the home, and what had been said by then.
struct Snapshot {
    directory: tempfile::TempDir,
    /// The entries of the ledger as they were exported then; none of them may be different later.
    ledger: Vec<String>,
    sent: usize,
}

/// A world with a clock, a past, and a directory for heads outside of the home.
struct Weeks {
    world: World,
    client: Client,
    heads: tempfile::TempDir,
    sent: Vec<Sent>,
    events: u64,
    snapshot: Option<Snapshot>,
    /// Whether some head outside knows of entries that the home has lost.
    lost: bool,
}

impl Weeks {
    fn begin() -> Self {
        let world = World::with(client::own(), Build::Failpoints, None);
        let heads = tempfile::tempdir().expect("a directory");
        world.configure(&format!(
            "[ledger]\nheads = {:?}\nrotate_entries = 64\nhead_every_entries = 8\nhead_every_seconds = 2\n[session]\nidle_seconds = 1\n",
            heads.path().display().to_string()
        ));
        world.up();
        world.agent("a");
        world.agent("b");
        let client = Client::of(&world);
        Self { world, client, heads, sent: Vec::new(), events: 0, snapshot: None, lost: false }
    }

    /// One message; whether its answer is waited for is chance too.
    fn talk(&mut self, chance: &mut Rng) {
        let agent = if chance.u64(..2) == 0 { "a" } else { "b" };
        self.events += 1;
        let text = match chance.u64(..3) {
            0 => format!("write file-{}.txt: content", self.events),
            1 => format!("append log-{}.txt: content", self.events),
            _ => format!("echo word-{}", self.events),
        };
        let event = format!("event-{}", self.events);
        let taken = insist("take a message", || self.client.send(agent, &text, &event));
        let id = taken["message_id"].as_str().expect("an id").to_owned();
        if chance.u64(..2) == 0 {
            insist("answer a message", || answered(&self.client, &id));
        }
        self.sent.push(Sent { text, id });
    }

    fn all_answered(&self) {
        for message in &self.sent {
            insist("answer a message", || answered(&self.client, &message.id));
        }
    }

    /// Starts the host with a clock that was set by so many milliseconds.
    fn up_at(&mut self, shift_ms: i64) {
        self.world.set_env("IRONCLAW_CLOCK_SHIFT_MS", Some(&shift_ms.to_string()));
        self.world.up();
    }

    fn take_snapshot(&mut self) {
        self.all_answered();
        self.world.down();
        let directory = tempfile::tempdir().expect("a directory");
        copy_as_is(&self.world.home, &directory.path().join("home"));
        let ledger = self.entries();
        self.snapshot = Some(Snapshot { directory, ledger, sent: self.sent.len() });
        self.world.up();
    }

    /// Puts the home back to what it was, as a person would whose disk has snapshots.
    fn restore(&mut self) {
        let Some(snapshot) = self.snapshot.take() else { return };
        self.all_answered();
        if self.sent.len() > snapshot.sent {
            // A kill directly after an answer may come before a head outside, and then no warning can appear.
            wait_for("a head outside", || self.is_known_outside(snapshot.ledger.len()));
        }
        self.world.kill_host();
        let before = self.verify();
        assert!(before.is_ok() || self.lost, "{before:?}");
        for entry in std::fs::read_dir(&self.world.home).expect("a home") {
            let path = entry.expect("readable").path();
            if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) }.expect("removed");
        }
        let kept = snapshot.directory.path().join("home");
        for entry in std::fs::read_dir(&kept).expect("a copy") {
            let path = entry.expect("readable").path();
            copy_as_is(&path, &self.world.home.join(path.file_name().expect("a name")));
        }
        let forgotten = self.sent.len() - snapshot.sent;
        self.sent.truncate(snapshot.sent);
        // By itself the older ledger is whole; the heads outside know that it had gone on, and from where.
        assert!(self.entries() == snapshot.ledger, "what was put back is what was there");
        self.is_whole_by_itself();
        if !self.lost {
            match self.verify() {
                // Nothing was said since, and no head was signed.
                Ok(_) => assert_eq!(forgotten, 0, "the heads outside know more than the home"),
                Err(said) => {
                    let first = snapshot.ledger.len();
                    assert!(said.contains(&format!("bad seq {first}")), "the first lost entry is {first}: {said}");
                    self.lost = true;
                }
            }
        }
        self.world.up();
        if forgotten > 0 {
            let warned = || self.world.status()["host"]["warnings"].to_string();
            wait_for("the host to notice", || warned().contains("know another history from entry"));
            assert!(!self.world.entries("ledger.behind_heads").is_empty());
        }
    }

    /// Whether a head outside of the home names the entry with this number or a later one.
    fn is_known_outside(&self, entry: usize) -> bool {
        let files = std::fs::read_dir(self.heads.path()).expect("a directory");
        let texts = files.filter_map(|file| std::fs::read_to_string(file.expect("readable").path()).ok());
        let heads: Vec<String> = texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
        let numbers = heads.iter().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        numbers.filter_map(|head| head["seq"].as_u64()).any(|seq| seq >= entry as u64)
    }

    /// The entries as exported, without the head behind them, which is signed anew each time.
    fn entries(&self) -> Vec<String> {
        let exported = self.world.ctl(&["audit", "export"]).ok().stdout;
        exported.lines().filter(|line| line.starts_with(r#"{"seq":"#)).map(str::to_owned).collect()
    }

    /// The ledger against the heads that were kept outside.
    fn verify(&self) -> Result<String, String> {
        let answer = self.world.ctl(&["audit", "verify"]);
        if answer.code == 0 { Ok(answer.stdout) } else { Err(answer.stdout + &answer.stderr) }
    }

    /// The ledger without the heads: all its chains and their ties.
    fn is_whole_by_itself(&self) {
        let file = self.heads.path().join("exported.jsonl");
        std::fs::write(&file, self.world.ctl(&["audit", "export"]).ok().stdout).expect("written");
        let shown = file.display().to_string();
        self.world.ctl(&["audit", "verify", "--file", &shown]).ok();
        std::fs::remove_file(&file).expect("removed");
    }

    fn rotate(&self) {
        let answer = self.world.ctl(&["audit", "rotate"]);
        if !answer.stderr.contains("holds nothing but its genesis") {
            answer.ok();
        }
    }

    fn kill_a_sandbox(&self) {
        let status = self.world.status();
        let sessions = status["sessions"].as_array().expect("a list").iter();
        if let Some(pid) = sessions.filter_map(|session| session["pid"].as_i64()).next() {
            kill(pid as i32);
        }
    }
}

#[test]
fn random_weeks_lose_no_message_and_keep_the_ledger_whole() {
    let (seed, steps) = run_of("IRONCLAW_WEEKS", STEPS);
    let (mut weeks, mut chance) = (Weeks::begin(), Rng::with_seed(seed));
    for step in 0..steps {
        let what = chance.u64(..16);
        println!("step {step}: {what}");
        match what {
            0..=7 => weeks.talk(&mut chance),
            8 => {
                weeks.world.kill_host();
                weeks.world.up();
            }
            9 => weeks.kill_a_sandbox(),
            10 => {
                weeks.world.down();
                weeks.up_at(0);
            }
            11 => {
                weeks.world.kill_host();
                weeks.up_at(-HOUR_MS);
            }
            12 => {
                weeks.world.kill_host();
                weeks.up_at(40 * 24 * HOUR_MS);
            }
            13 => weeks.rotate(),
            14 => weeks.take_snapshot(),
            _ => weeks.restore(),
        }
    }
    weeks.all_answered();
    weeks.sent.sort_by(|a, b| a.id.cmp(&b.id));
    all_answered_once(&weeks.world, &weeks.sent, seed);
    weeks.is_whole_by_itself();
    assert_eq!(weeks.verify().is_err(), weeks.lost, "seed {seed}: {:?}", weeks.verify());
    // A rotation and a restore at least, whatever chance had in store.
    weeks.take_snapshot();
    weeks.world.ctl(&["audit", "rotate"]).ok();
    weeks.talk(&mut chance);
    weeks.restore();
    assert!(weeks.lost, "seed {seed}");
    weeks.all_answered();
    all_answered_once(&weeks.world, &weeks.sent, seed);
    weeks.is_whole_by_itself();
    assert!(weeks.verify().is_err(), "seed {seed}: the gap stays known");
    weeks.world.down();
}
