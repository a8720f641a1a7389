//! Messages between agents, in random steps: requests through several agents, changes of groups and rights, removed sessions, kills,
//! restarts and restored backups. Each request has an answer or the words of the host, each answer one receipt, and the ledger agrees.
//!
//! Each run prints its seed, and `IRONCLAW_SEED` repeats the run. `IRONCLAW_AGENTS` sets its length. See `away_random` and `e2e::agents`.

use crate::chaos::kill::run_settings;
use crate::security::tamper::outside;
use crate::support::client::Raw;
use crate::support::host_fixture::{Answer, Build, TestHost, wait_for};
use crate::support::record;
use fastrand::Rng;
use rusqlite::Connection;
use serde_json::{Value, json};

/// The number of steps without `IRONCLAW_AGENTS`.
const STEPS: u64 = 6;

/// The most agents and people, in a long run.
const AGENTS_MAX: usize = 20;
const PEOPLE_MAX: usize = 10;

/// The steps of a message between agents.
const POINTS: [&str; 5] = ["call_started", "call_sent", "accept", "intent", "turn_open"];

/// The exit code of a command that no host answers.
const NO_HOST: i32 = 3;

struct Random {
    host: TestHost,
    /// True if the running host dies at a fail point.
    may_die: bool,
    agents: Vec<String>,
    people: Vec<Raw>,
    made: u64,
    backup: Option<std::path::PathBuf>,
}

impl Random {
    fn begin(steps: u64) -> Self {
        let (agents, people) = if steps > STEPS { (AGENTS_MAX, PEOPLE_MAX) } else { (4, 2) };
        let mut host = TestHost::own(Build::Failpoints);
        let data = outside(&host);
        host.set_env("XDG_DATA_HOME", data.to_str());
        host.up();
        let agents: Vec<String> = (0..agents).map(|n| format!("a{n}")).collect();
        agents.iter().for_each(|agent| host.agent(agent));
        let mut random = Self { host, may_die: false, agents, people: Vec::new(), made: 0, backup: None };
        random.people.push(Raw::of(&random.host));
        for n in 1..people {
            let name = format!("p{n}");
            random.host.ctl(&["person", "add", &name]).ok();
            random.people.push(Raw::of_person(&random.host, &name));
        }
        // Each agent may send to the two behind it, in overlapping groups.
        for (n, agent) in random.agents.clone().iter().enumerate() {
            for step in 1..=2 {
                let to = random.agents[(n + step) % random.agents.len()].clone();
                random.host.ctl(&["destination", "add", agent, &to, "--agent", &to, "--yes"]).ok();
            }
            random.set_group(n);
        }
        random
    }
    fn revive(&mut self) {
        if self.host.pid().is_none() {
            self.host.up();
            self.may_die = false;
        }
    }

    fn down(&mut self) {
        self.answered(&["down"]);
        self.host.kill_host();
        self.may_die = false;
    }

    /// Runs a command; `None` if the host died at a fail point meanwhile.
    fn command(&self, arguments: &[&str]) -> Option<Answer> {
        let answer = self.host.ctl(arguments);
        (!self.may_die || answer.code != NO_HOST).then_some(answer)
    }

    /// Runs a command that succeeds; `None` if the host died at a fail point meanwhile.
    fn answered(&self, arguments: &[&str]) -> Option<Answer> {
        self.command(arguments).map(Answer::ok)
    }

    fn set_group(&self, n: usize) {
        let members: Vec<&str> = (0..3).map(|step| self.agents[(n + step) % self.agents.len()].as_str()).collect();
        let name = format!("g{n}");
        let tools = ["--tools", "send_message,write_file", "--yes"];
        self.answered(&[&["group", "add", &name], &members[..], &tools].concat());
    }

    fn remove_group(&self, n: usize) {
        let Some(answer) = self.command(&["--json", "group", "remove", &format!("g{n}"), "--yes"]) else { return };
        if answer.code != 0 {
            answer.refused("\"group_unknown\"");
        }
    }
    fn set_access(&self, n: usize, access: &str) {
        let payload = json!({ "access": access }).to_string();
        let what =
            ["--kind", "permissions", "--agent", &self.agents[n], "--payload", &payload, "--reason", "it is time"];
        let Some(submitted) = self.command(&[&["--json", "change", "submit"], &what[..]].concat()) else { return };
        if submitted.code != 0 {
            submitted.refused("\"change_empty\"");
            return;
        }
        let id = submitted.json()["id"].as_str().expect("an id").to_owned();
        if let Some(decided) = self.answered(&["--json", "approve", &id]) {
            assert_eq!(decided.json()["status"], "done", "{}", decided.stdout);
        }
    }

    /// Sends a request of a random person, which passes through up to three agents. The host may die meanwhile.
    fn say(&mut self, rng: &mut Rng) {
        let mut at = rng.usize(..self.agents.len());
        let first = self.agents[at].clone();
        let mut receivers = Vec::new();
        for _ in 0..rng.usize(1..=3) {
            at = (at + rng.usize(1..=2)) % self.agents.len();
            receivers.push(self.agents[at].clone());
        }
        self.made += 1;
        let inner = format!("write n{}: x", self.made);
        let text = receivers.iter().rev().fold(inner, |text, to| format!("send {text} to {to}"));
        let thread = format!("t{}", rng.u8(..2));
        let body = json!({ "text": text, "event_id": format!("e{}", self.made), "thread": thread });
        let person = &self.people[rng.usize(..self.people.len())];
        drop(person.try_ask("POST", &format!("/v1/agents/{first}/messages"), &body.to_string()));
    }

    fn step(&mut self, rng: &mut Rng) {
        for _ in 0..rng.usize(1..4) {
            self.say(rng);
        }
        let n = rng.usize(..self.agents.len());
        match rng.u8(..8) {
            0 => self.host.kill_host(),
            1 => {
                self.down();
                // Work that waits may bring it to the point during its start.
                self.host.set_env("IRONCLAW_FAILPOINT", Some(POINTS[rng.usize(..POINTS.len())]));
                drop(self.host.ctl(&["up", "--detach"]));
                self.host.set_env("IRONCLAW_FAILPOINT", None);
                self.may_die = true;
                self.renew();
                self.say(rng);
            }
            2 => self.down(),
            3 => self.remove_group(n),
            4 => self.set_group(n),
            5 => self.set_access(n, if rng.bool() { "members" } else { "everyone" }),
            6 => self.remove_a_session(rng),
            _ => self.back_up_or_restore(),
        }
        self.revive();
        self.renew();
    }

    /// Makes clients of the present start of the host.
    fn renew(&mut self) {
        if self.host.pid().is_some() {
            let host = Raw::of(&self.host);
            self.people = self.people.iter().map(|person| host.clone().with_token(&person.token)).collect();
        }
    }

    fn remove_a_session(&self, rng: &mut Rng) {
        let Some(listed) = self.answered(&["--json", "session", "list"]) else { return };
        let listed = listed.json();
        let sessions = listed.as_array().expect("a list");
        if let Some(session) = (!sessions.is_empty()).then(|| &sessions[rng.usize(..sessions.len())]) {
            self.answered(&["session", "remove", session["id"].as_str().expect("an id"), "--yes"]);
        }
    }

    fn back_up_or_restore(&mut self) {
        let Some(file) = self.backup.take() else {
            let file = self.host.home.with_extension("backup");
            let created = self.answered(&["backup", "create", file.to_str().expect("UTF-8"), "--force"]);
            self.backup = created.map(|_| file);
            return;
        };
        self.down();
        let name = file.to_str().expect("UTF-8");
        let restored = self.host.ctl(&["--json", "backup", "restore", name, "--replace", "--yes"]).ok().json();
        std::fs::remove_dir_all(restored["former"].as_str().expect("the former home")).expect("removed");
        self.host.up();
        self.host.ctl(&["audit", "accept", "--reason", "restored a backup"]).ok();
    }

    /// Waits until no message waits, and checks that every message, answer and delivery is accounted for.
    fn check(&mut self) {
        let count = |db: &Connection, sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).expect(sql);
        wait_for("the end of all turns", || {
            self.revive();
            let db = record::open(&self.host.home);
            let waiting = "SELECT count(*) FROM messages WHERE status IN ('queued','processing') AND trigger = 1";
            let open = "SELECT count(*) FROM deliveries WHERE channel = 'agent' AND state IN ('intent','sending')";
            count(&db, waiting) + count(&db, open) == 0
        });
        if self.may_die {
            // It would die at the next message, or dies after its last one at this moment.
            self.host.kill_host();
            self.revive();
        }
        self.renew();
        let db = record::open(&self.host.home);
        let live = "(SELECT id FROM sessions WHERE state <> 'removed')";
        for (what, sql) in [
            (
                "a request without an answer",
                format!(
                    "SELECT count(*) FROM agent_messages AS request WHERE kind = 'request' AND source_session IN {live} \
                     AND answered = 0"
                ),
            ),
            (
                "an answer without a receipt",
                "SELECT count(*) FROM agent_messages JOIN deliveries ON deliveries.id = delivery WHERE state <> 'received'"
                    .to_owned(),
            ),
            (
                "a delivery with two answers",
                "SELECT count(*) FROM (SELECT 1 FROM agent_messages WHERE delivery IS NOT NULL GROUP BY delivery \
                 HAVING count(*) > 1)"
                    .to_owned(),
            ),
            (
                "an answer that is lost",
                format!(
                    "SELECT count(*) FROM deliveries WHERE channel = 'agent' AND state <> 'received' \
                     AND platform_id IN {live}"
                ),
            ),
            ("too many hops", "SELECT count(*) FROM agent_messages WHERE kind = 'request' AND hop > 5".to_owned()),
            (
                "another hop in the seal",
                "SELECT count(*) FROM agent_messages JOIN items ON replace(items.id, 'itm_', 'msg_') = message_id \
                 WHERE items.hop <> agent_messages.hop"
                    .to_owned(),
            ),
            (
                "a message for a wrong session",
                "SELECT count(*) FROM agent_messages JOIN messages ON messages.id = message_id \
                 JOIN sessions ON sessions.id = session_id WHERE agent_messages.kind = 'request' \
                 AND (sessions.platform_id <> source_session OR sessions.thread_id <> principal)"
                    .to_owned(),
            ),
        ] {
            assert_eq!(count(&db, &sql), 0, "{what}");
        }
        self.check_ledger(&db);
        self.host.ctl(&["audit", "verify"]).ok();
    }

    /// Compares the entries with the rows.
    fn check_ledger(&self, db: &Connection) {
        let mut of_rows = db.prepare("SELECT message_id, kind, delivery IS NULL FROM agent_messages").expect("SQL");
        let of_rows = of_rows
            .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, bool>(2)?)));
        let ledger = self.host.ledger();
        let has = |what: &str, message: &str| {
            let is_it = |entry: &&Value| entry["data"]["what"] == what && entry["data"]["message"] == *message;
            ledger.iter().filter(is_it).count() == 1
        };
        for row in of_rows.expect("rows") {
            let (message, kind, is_of_host) = row.expect("a row");
            let what = match (kind.as_str(), is_of_host) {
                ("request", _) => "agent.sent",
                (_, true) => "agent.refused",
                (_, false) => "agent.answered",
            };
            assert!(has(what, &message), "{what} of {message}");
        }
    }
}

#[test]
fn messages_between_agents_are_accounted_for() {
    let (seed, steps) = run_settings("IRONCLAW_AGENTS", STEPS);
    let (mut random, mut rng) = (Random::begin(steps), Rng::with_seed(seed));
    random.back_up_or_restore();
    for step in 1..=steps {
        random.step(&mut rng);
        if step % 6 == 0 {
            random.check();
        }
    }
    random.check();
    random.host.down();
}
