//! Changes in random steps: proposals, decisions, kills, starts, clock changes and restores. No change is applied twice or without
//! approval, no change is lost, and the ledger agrees with the record.
//!
//! Each run prints its seed, and `IRONCLAW_SEED` repeats the run. `IRONCLAW_CHANGES` sets its length. See `e2e::changes`.
#![allow(clippy::print_stdout)] // the printed seed repeats a failed run

use crate::chaos::kill::run_settings;
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost, alive, copy_with_owners, wait_for};
use crate::support::plain_browser::PlainBrowser;
use fastrand::Rng;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::ErrorKind;

/// The number of steps without `IRONCLAW_CHANGES`.
const STEPS: u64 = 70;

/// A time after which a pending change expires.
const OVER_MS: i64 = 8 * 24 * 3_600_000;

/// The fail points of a decision and of its application.
pub(crate) const POINTS: [&str; 5] = ["approved", "change_prepared", "change_applied", "rejected", "change_failed"];

/// The last state of a change that the host reported to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Proposed,
    Approved,
    Rejected,
}

struct Snapshot {
    directory: tempfile::TempDir,
    known: BTreeMap<String, Known>,
}

struct Random {
    host: TestHost,
    known: BTreeMap<String, Known>,
    proposals: u64,
    shift_ms: i64,
    snapshot: Option<Snapshot>,
    /// A browser of the owner, which decides at times in place of `ironctl`.
    browser: Option<PlainBrowser>,
    _heads: tempfile::TempDir,
}

impl Random {
    fn begin() -> Self {
        let host = TestHost::own(Build::Failpoints);
        let heads = tempfile::tempdir().expect("a directory");
        let shown = heads.path().display().to_string();
        host.configure(&format!("[ledger]\nheads = {shown:?}\nhead_every_entries = 4\nrotate_entries = 200\n"));
        host.up();
        host.agent("a");
        host.agent("b");
        let known = BTreeMap::new();
        Self { host, known, proposals: 0, shift_ms: 0, snapshot: None, browser: None, _heads: heads }
    }

    /// Sends a request to the API; returns `None` if the host died.
    fn ask(&self, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        Raw::of(&self.host).try_ask(method, path, &body).ok()
    }

    fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask("GET", path, &Value::Null).expect("the host answers");
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Proposes a change. If `may_die`, the host may die during the request.
    fn submit(&mut self, rng: &mut Rng, may_die: bool) {
        self.proposals += 1;
        let agent = if rng.u64(..2) == 0 { "a" } else { "b" };
        let payload = json!({ "instructions": format!("text {}", self.proposals) });
        let body = json!({ "kind": "persona", "agent": agent, "payload": payload, "reason": "chance" });
        match self.ask("POST", "/v1/changes", &body) {
            Some((200, said)) => {
                self.known.insert(said["id"].as_str().expect("an id").to_owned(), Known::Proposed);
            }
            Some((status, said)) => assert_eq!(said["error"]["code"], "changes_too_many", "{status} {said}"),
            None => assert!(may_die, "the host did not answer"),
        }
    }

    fn any(&self, rng: &mut Rng) -> Option<String> {
        let at = rng.usize(..self.known.len().max(1));
        self.known.keys().nth(at).cloned()
    }

    /// Decides on a random change, which may be decided already. If `may_die`, the host may die during the request.
    fn decide(&mut self, rng: &mut Rng, may_die: bool) {
        let Some(id) = self.any(rng) else { return };
        let change = match self.ask("GET", &format!("/v1/waiting/{id}"), &Value::Null) {
            Some((status, change)) => {
                assert_eq!(status, 200, "{id}: {change}");
                change
            }
            None => return assert!(may_die, "the host did not answer"),
        };
        let open = ["pending", "doubtful"].contains(&change["status"].as_str().expect("a status"));
        let yes = rng.u64(..3) > 0;
        let decision = if yes { json!({ "approve": change["shown_digest"] }) } else { json!({ "reject": "chance" }) };
        let decided = match rng.bool() {
            true => self.ask("POST", &format!("/v1/waiting/{id}/decision"), &decision),
            false => self.decide_in_browser(&change, yes),
        };
        match decided {
            Some((200, _)) => {
                assert!(open, "{id} was decided twice: {change}");
                self.known.insert(id, if yes { Known::Approved } else { Known::Rejected });
            }
            Some((409, said)) => {
                let code = said["error"]["code"].as_str().unwrap_or_default();
                assert!(!open || ["change_stale", "change_expired"].contains(&code), "{change}: {said}");
            }
            Some((status, said)) => panic!("{id}: {status} {said}"),
            None => assert!(may_die, "the host did not answer"),
        }
    }

    /// Decides on a change on its page in a browser. Returns the answer as the API gives it; `None` if the host died.
    fn decide_in_browser(&mut self, change: &Value, yes: bool) -> Option<(u16, Value)> {
        let id = change["id"].as_str().expect("an id");
        let shown = change["shown_digest"].as_str().expect("a digest");
        let fields = match yes {
            true => [("decision", "approve"), ("typed", "approve"), ("shown", shown)],
            false => [("decision", "reject"), ("reason", "chance"), ("shown", "")],
        };
        loop {
            let browser = match self.browser.take() {
                Some(browser) => browser,
                None => PlainBrowser::try_sign_in(&self.ask("POST", "/v1/console/codes", &json!({}))?.1).ok()?,
            };
            let page = match browser.try_submit(&format!("/waiting/{id}/decision"), &fields) {
                Ok(page) => page,
                // A restored record has another address.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => continue,
                Err(_) => return None,
            };
            let code = page.code().unwrap_or_default().to_owned();
            // The clock or a restore ended the session, or it was confirmed too long ago.
            if ["session_missing", "not_confirmed", "host_foreign"].contains(&code.as_str()) {
                continue;
            }
            self.browser = Some(browser);
            let status = if page.status == 303 { 200 } else { page.status };
            return Some((status, json!({ "error": { "code": code } })));
        }
    }

    /// Sends decisions to a host that dies at a random fail point.
    fn kill_while_deciding(&mut self, rng: &mut Rng) {
        let point = POINTS[rng.usize(..POINTS.len())];
        self.host.down();
        self.host.up_failing_at(point);
        let host_pid = self.host.pid();
        for _ in 0..4 {
            if host_pid.is_some_and(alive) && self.host.pid().is_some() {
                self.submit(rng, true);
                self.decide(rng, true);
            }
        }
        self.host.kill_host();
        self.host.up();
    }

    fn restart_later(&mut self, by_ms: i64) {
        self.host.kill_host();
        self.shift_ms += by_ms;
        self.host.set_env("IRONCLAW_CLOCK_SHIFT_MS", Some(&self.shift_ms.to_string()));
        self.host.up();
    }

    fn take_snapshot(&mut self) {
        self.wait_until_applied();
        self.host.down();
        let directory = tempfile::tempdir().expect("a directory");
        copy_with_owners(&self.host.home, &directory.path().join("home"));
        self.snapshot = Some(Snapshot { directory, known: self.known.clone() });
        self.host.up();
    }

    /// Restores the home from the snapshot. Its open changes become doubtful, because the heads outside are newer.
    fn restore(&mut self) {
        let Some(snapshot) = self.snapshot.take() else { return };
        self.wait_until_applied();
        self.host.down();
        for entry in std::fs::read_dir(&self.host.home).expect("a home") {
            let path = entry.expect("readable").path();
            if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) }.expect("removed");
        }
        for entry in std::fs::read_dir(snapshot.directory.path().join("home")).expect("a copy") {
            let path = entry.expect("readable").path();
            copy_with_owners(&path, &self.host.home.join(path.file_name().expect("a name")));
        }
        self.known = snapshot.known;
        self.host.up();
        // Each stop writes a head outside, so the host detects that the restored record is older.
        let open = self.changes().into_iter().filter(|change| change["status"] == "pending").count();
        assert_eq!(open, 0, "open changes become doubtful");
    }
    fn changes(&self) -> Vec<Value> {
        let list = self.get("/v1/waiting?type=change&status=all");
        assert_eq!(
            list["more"], false,
            "the run has more changes than one list returns: set a smaller IRONCLAW_CHANGES"
        );
        list["entries"].as_array().expect("a list").clone()
    }
    fn wait_until_applied(&self) {
        wait_for("approved changes to be applied", || {
            self.changes().iter().all(|change| change["status"] != "approved")
        });
    }

    /// Waits until every approved change is applied, and then checks the invariants.
    fn check_invariants(&self) {
        self.wait_until_applied();
        // The host may expire a change between two requests.
        let (ledger, changes) = loop {
            let (before, ledger, after) = (self.changes(), self.host.ledger(), self.changes());
            if before == after {
                break (ledger, after);
            }
        };
        let of = |id: &str| -> Vec<&str> {
            let about = ledger.iter().filter(|entry| entry["data"]["change"] == id);
            about.map(|entry| entry["data"]["what"].as_str().expect("a word")).collect()
        };
        let count = |words: &[&str], word: &str| words.iter().filter(|found| **found == word).count();
        let ids: Vec<&str> = changes.iter().map(|change| change["id"].as_str().expect("an id")).collect();
        for entry in ledger.iter().filter(|entry| entry["data"]["what"] == "change.proposed") {
            let id = entry["data"]["change"].as_str().expect("an id");
            assert!(ids.contains(&id), "{id} was proposed but is missing");
        }
        for id in self.known.keys() {
            assert!(ids.contains(&id.as_str()), "{id} was reported but is missing");
        }
        for change in &changes {
            let (id, status) = (change["id"].as_str().expect("an id"), change["status"].as_str().expect("a status"));
            let words = of(id);
            assert_eq!(count(&words, "change.proposed"), 1, "{id}: {words:?}");
            let ends = ["applied", "rejected", "expired", "withdrawn", "failed"];
            let of_ends: Vec<&str> =
                ends.into_iter().filter(|end| words.contains(&format!("change.{end}").as_str())).collect();
            match if status == "done" { "applied" } else { status } {
                "pending" | "doubtful" => assert!(of_ends.is_empty(), "{id} is {status}: {words:?}"),
                end => {
                    assert_eq!(of_ends, [end], "{id}: {words:?}");
                    assert_eq!(count(&words, &format!("change.{end}")), 1, "{id}: {words:?}");
                }
            }
            let applied = words.iter().position(|word| *word == "change.applied");
            if let Some(applied) = applied {
                let before = &words[..applied];
                assert!(before.contains(&"change.approved"), "{id} was applied before it was approved: {words:?}");
                assert!(before.contains(&"change.approved_by"), "{id} was applied without an approval: {words:?}");
            }
            match self.known.get(id) {
                Some(Known::Approved) => {
                    assert!(
                        ["done", "failed", "withdrawn", "doubtful"].contains(&status),
                        "{id} was approved and is {status}"
                    )
                }
                Some(Known::Rejected) => {
                    assert!(["rejected", "doubtful"].contains(&status), "{id} was rejected and is {status}")
                }
                Some(Known::Proposed) | None => {}
            }
        }
        for agent in ["a", "b"] {
            let shown = self.get(&format!("/v1/agents/{agent}"));
            let of_agent = |change: &&Value| change["agent"] == agent && change["status"] == "done";
            let last = ledger
                .iter()
                .filter(|entry| entry["data"]["what"] == "change.applied")
                .filter_map(|entry| {
                    changes.iter().filter(of_agent).find(|change| change["id"] == entry["data"]["change"])
                })
                .next_back();
            let expected = match last {
                Some(change) => self.get(&format!("/v1/waiting/{}", change["id"].as_str().expect("an id")))["details"]
                    ["change"]["after"]["instructions"]
                    .clone(),
                None => json!(""),
            };
            assert_eq!(shown["persona"], expected, "agent {agent}");
        }
    }
}

#[test]
fn random_changes_are_applied_once_and_only_when_approved() {
    let (seed, steps) = run_settings("IRONCLAW_CHANGES", STEPS);
    let (mut random, mut rng) = (Random::begin(), Rng::with_seed(seed));
    for step in 0..steps {
        let what = rng.u64(..20);
        println!("step {step}: {what}");
        match what {
            0..=6 => random.submit(&mut rng, false),
            7..=12 => random.decide(&mut rng, false),
            13 => {
                random.host.kill_host();
                random.host.up();
            }
            14 => {
                random.host.restart();
            }
            15 | 16 => random.kill_while_deciding(&mut rng),
            17 => random.restart_later(OVER_MS),
            18 => random.take_snapshot(),
            _ => random.restore(),
        }
        random.check_invariants();
    }
    // Every run takes each kind of step at least once.
    random.submit(&mut rng, false);
    random.take_snapshot();
    (0..4).for_each(|_| random.submit(&mut rng, false));
    (0..8).for_each(|_| random.decide(&mut rng, false));
    random.check_invariants();
    random.restore();
    random.check_invariants();
    random.restart_later(OVER_MS);
    random.check_invariants();
    random.host.down();
}
