//! Calls in random steps: posts, decisions, kills, starts, expiries, revocations and restored backups. No call runs twice or without a
//! permit, no call and no request is lost, and the ledger agrees with the record.
//!
//! Each post has its own text, and the server on loopback keeps what it gets. Each run prints its seed, and `IRONCLAW_SEED` repeats the
//! run. `IRONCLAW_CALLS` sets its length. See `e2e::requests` and `changes_random`.
#![allow(clippy::print_stdout)] // the printed seed repeats a failed run

mod invariants;
mod restores;

use crate::chaos::kill::run_settings;
use crate::security::requests::POINTS;
use crate::security::tamper::outside;
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost, WAIT_MAX, alive};
use crate::support::model_server::{Act, Seen, Server};
use crate::support::site::{LOOPBACK, Site};
use fastrand::Rng;
use restores::{Backup, Counted};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Instant;

/// The number of steps without `IRONCLAW_CALLS`.
const STEPS: u64 = 6;

/// The number of steps with one host: one list of the API has all of its requests.
const STEPS_OF_A_HOST: u64 = 60;

/// Most of the time of a run is a wait for its host.
const HOSTS_AT_ONCE: usize = 3;

/// The most posts of a step, and the most decisions.
const BATCH_MAX: usize = 8;

/// The number of steps between two checks of the invariants.
const STEPS_OF_A_CHECK: u64 = 10;

/// A time after which a pending request expires. A day has a bound on the requests of a person.
const OVER_MS: i64 = 25 * 3_600_000;

/// The most equal calls of a message.
const CALLS_MAX: usize = 3;

const AGENTS: [&str; 4] = ["a", "b", "c", "d"];

/// The owner, an admin whose role the run changes, and a member.
const PEOPLE: [&str; 3] = ["owner", "ada", "mara"];

/// A request without a grant needs the approvals of two people.
const POLICY: &str = "[call.send]\napprovals = 2\n";

/// A post that was sent to an agent.
#[derive(Debug, Clone)]
struct Post {
    person: usize,
    message: String,
    is_answered: bool,
}

/// The part of the test's knowledge that a restore puts back.
#[derive(Debug, Clone, Default)]
struct Known {
    /// By their texts.
    posts: BTreeMap<String, Post>,
    /// The last decisions that the host reported: `true` is an approval.
    decided: BTreeMap<String, bool>,
    /// The grant of the site for each agent.
    granted: [bool; AGENTS.len()],
}

struct Random {
    /// The number of this host in the campaign.
    number: u64,
    host: TestHost,
    site: Site,
    _model: Server,
    /// A client of each person, for the present start of the host.
    people: Vec<Raw>,
    known: Known,
    made: u64,
    /// The arrivals at the site of each text whose permit was checked.
    arrived: BTreeMap<String, usize>,
    /// The arrivals of each text in histories that a restore replaced.
    replaced: BTreeMap<String, usize>,
    /// Whether the next check is the first one after a restore.
    is_restored: bool,
    shift_ms: i64,
    backup: Option<Backup>,
    counted: Counted,
    /// The fail point at which the host dies, if it does.
    point: Option<&'static str>,
}

/// Makes the call of a message, and an equal one as long as the results do not tell an outcome, also in another try at the message.
fn respond(seen: &Seen) -> Act {
    let (asked, results) = (seen.asked(), seen.results());
    let words: Vec<&str> = asked.split(' ').collect();
    let is_open = |result: &String| {
        ["is unknown", "pending req_", "waits as req_", "was not made"].iter().any(|words| result.contains(words))
    };
    match words[..] {
        ["post", text, "at", url] if results.len() < CALLS_MAX && results.iter().all(is_open) => {
            let headers = json!({ "content-type": "text/plain" });
            let arguments = json!({ "method": "POST", "url": url, "headers": headers, "body": text });
            Act::Call(String::new(), vec![("http_fetch".to_owned(), arguments)])
        }
        _ => Act::Say(format!("done: {results:?}")),
    }
}

impl Random {
    fn begin(number: u64) -> Self {
        let mut host = TestHost::own(Build::Failpoints);
        let data = outside(&host);
        host.set_env("XDG_DATA_HOME", data.to_str());
        host.set_env("IRONCLAW_CLOCK_SHIFT_FILE", host.home.with_file_name("shift").to_str());
        host.configure(LOOPBACK);
        std::fs::write(host.home.join("policy.toml"), POLICY).expect("written");
        host.up();
        let model = Server::start(respond);
        host.add_model(&model.url());
        for agent in AGENTS {
            host.ctl(&["agent", "add", agent, "--model", "m"]).ok();
            host.change(agent, "enabled_tools", &json!({ "add": ["http_fetch"] }));
        }
        host.ctl(&["person", "add", "ada", "--role", "admin"]).ok();
        host.ctl(&["person", "add", "mara"]).ok();
        let people = PEOPLE.map(|person| Raw::of_person(&host, person)).to_vec();
        let known = Known { granted: [false; AGENTS.len()], ..Known::default() };
        let mut random = Self {
            number,
            host,
            site: Site::start(),
            _model: model,
            people,
            known,
            made: 0,
            arrived: BTreeMap::new(),
            replaced: BTreeMap::new(),
            is_restored: false,
            shift_ms: 0,
            backup: None,
            counted: Counted::default(),
            point: None,
        };
        (0..AGENTS.len()).for_each(|agent| random.switch_grant(agent));
        random
    }
    fn up(&mut self, point: Option<&str>) {
        self.host.set_env("IRONCLAW_FAILPOINT", point);
        self.host.up();
        self.counted.starts += 1;
        self.host.set_env("IRONCLAW_FAILPOINT", None);
        let host = Raw::of(&self.host);
        self.people = self.people.iter().map(|person| host.clone().with_token(&person.token)).collect();
    }

    /// Sends a request to the API; returns `None` if the host died and `may_die` is true.
    fn ask(&self, person: usize, (method, path): (&str, &str), body: &Value, may_die: bool) -> Option<(u16, Value)> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = self.people[person].try_ask(method, path, &body);
        assert!(may_die || answer.is_ok(), "{path}: {answer:?}");
        answer.ok()
    }

    fn try_get(&self, person: usize, path: &str, may_die: bool) -> Option<Value> {
        let (status, body) = self.ask(person, ("GET", path), &Value::Null, may_die)?;
        assert_eq!(status, 200, "{path}: {body}");
        Some(body)
    }

    fn get(&self, person: usize, path: &str) -> Value {
        self.try_get(person, path, false).expect("an answer")
    }

    /// Asks an agent to post a new text, and returns the text. A host that dies gets the same event again.
    fn post(&mut self, rng: &mut Rng, may_die: bool) -> String {
        self.made += 1;
        let (text, agent, person) =
            (format!("text{}", self.made), rng.usize(..AGENTS.len()), rng.usize(..PEOPLE.len()));
        let url = self.site.url(if rng.u8(..8) > 0 { "/notes" } else { "/other" });
        // Other words ask for nothing, and the lexicon decides about these.
        let words = format!("post {text} at {url}");
        let mut body = json!({ "text": words, "event_id": text });
        if rng.u8(..4) == 0 {
            body["allow"] = json!(["send"]);
        }
        match rng.u8(..3) {
            0 => {}
            // The context of a conversation gets text of others from an answer of the site.
            1 => body["thread"] = json!("shared"),
            _ => body["thread"] = json!(text),
        }
        let path = format!("/v1/agents/{}/messages", AGENTS[agent]);
        let mut said = self.ask(person, ("POST", &path), &body, may_die);
        if said.is_none() {
            self.host.kill_host();
            self.up(None);
            said = self.ask(person, ("POST", &path), &body, false);
        }
        let (status, said) = said.expect("an answer");
        assert_eq!(status, 202, "{said}");
        let message = said["message_id"].as_str().expect("an id").to_owned();
        self.known.posts.insert(text.clone(), Post { person, message, is_answered: false });
        text
    }

    /// Posts while the person follows the message, so that the turn may wait for the decision. The person decides or leaves.
    fn post_in_presence(&mut self, rng: &mut Rng, may_die: bool) {
        let text = self.post(rng, may_die);
        let Post { person, message, .. } = self.known.posts[&text].clone();
        let path = format!("/v1/messages/{message}");
        let stream = self.people[person].try_decide_at(&message);
        assert!(may_die || stream.is_ok(), "{stream:?}");
        let mut asked = None;
        let until = Instant::now() + WAIT_MAX;
        loop {
            let requests = self.try_get(person, "/v1/waiting?type=call&status=pending", may_die);
            let said = self.try_get(person, &format!("{path}?wait_ms=5"), may_die);
            let (Some(requests), Some(said)) = (requests, said) else { break };
            let entries = requests["entries"].as_array().expect("a list");
            asked =
                entries.iter().find(|entry| entry["details"]["call"]["arguments"]["body"] == text.as_str()).cloned();
            if asked.is_some() || said["status"] == "delivered" {
                break;
            }
            assert!(Instant::now() < until, "{text} has no request and no answer: {}", self.report(person, &path));
        }
        if let Some(entry) = asked {
            let id = entry["id"].as_str().expect("an id");
            let what = rng.u8(..6);
            println!("{}: {text} is asked for: {what}", self.number);
            match what {
                // The host ends while the turn waits, and the rights change before another try. At a fail point another call can end it
                // before the change.
                0 => {
                    if self.point.is_none() {
                        self.switch_grant(rng.usize(..AGENTS.len()));
                    }
                    self.host.kill_host();
                    drop(stream);
                    return self.up(None);
                }
                // An orderly stop keeps the turn that waits.
                1 => {
                    self.host.down();
                    drop(stream);
                    self.up(None);
                    return self.decide_on(id, person, rng, may_die);
                }
                2 => {}
                _ => self.decide_on(id, person, rng, may_die),
            }
        }
        drop(stream);
    }

    /// Returns a message and everything that it may wait for, for a failure. `path` is that of the message.
    fn report(&self, person: usize, path: &str) -> String {
        let why = format!("{path}/why");
        let paths = [(person, path), (person, &why), (0, "/v1/sessions"), (0, "/v1/waiting?type=call&status=pending")];
        let views = paths.map(|(by, path)| match self.people[by].try_ask("GET", path, "") {
            Ok((_, view)) => format!("{path}: {view}"),
            Err(error) => format!("{path}: {error}"),
        });
        let log = std::fs::read_to_string(self.host.home.join("logs/host.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let (views, last) = (views.join("\n"), lines[lines.len().saturating_sub(60)..].join("\n"));
        format!("{views}\n{last}")
    }

    /// Decides on a random request, which may be decided already, as a random person, who may not be asked.
    fn decide(&mut self, rng: &mut Rng, may_die: bool) {
        let path = format!("/v1/waiting?type=call&status={}", if rng.u8(..5) > 0 { "pending" } else { "all" });
        let Some(list) = self.try_get(0, &path, may_die) else { return };
        let Some(request) = rng.choice(list["entries"].as_array().expect("a list")) else { return };
        let id = request["id"].as_str().expect("an id");
        let principal = PEOPLE.iter().position(|person| request["requested_by"]["on_behalf_of"]["name"] == *person);
        let person = principal.filter(|_| rng.bool()).unwrap_or_else(|| rng.usize(..PEOPLE.len()));
        self.decide_on(id, person, rng, may_die);
        if rng.bool() {
            self.decide_on(id, rng.usize(..PEOPLE.len()), rng, may_die);
        }
    }

    fn decide_on(&mut self, id: &str, person: usize, rng: &mut Rng, may_die: bool) {
        let path = format!("/v1/waiting/{id}");
        let yes = rng.u8(..5) > 0;
        let Some((_, request)) = self.ask(person, ("GET", &path), &Value::Null, may_die) else { return };
        let decision = match yes {
            true => {
                json!({ "approve": request["shown_digest"].as_str().map_or_else(|| "0".repeat(64), str::to_owned) })
            }
            false => json!({ "reject": "chance" }),
        };
        let said = self.ask(person, ("POST", &format!("{path}/decision")), &decision, may_die);
        match said {
            Some((200, said)) => {
                // Who may see it may reject it.
                assert!(!yes || request["yours"] == true, "{id} was approved by another person");
                // A request may need another person too.
                if said["status"] != "pending" {
                    let earlier = self.known.decided.insert(id.to_owned(), yes);
                    assert_eq!(earlier, None, "{id} was decided twice: {request}");
                }
            }
            Some((status, said)) => {
                let known = [
                    "request_unknown",
                    "request_decided",
                    "not_yours_to_decide",
                    // The owner approved, and gave the person a role or a token after the request.
                    "approver_not_independent",
                    "call_expired",
                    "call_withdrawn",
                ];
                let code = said["error"]["code"].as_str().unwrap_or_default();
                assert!(known.contains(&code), "{id}: {status} {said}");
            }
            None => {}
        }
    }

    /// Sends posts and decisions to a host that dies at a random fail point.
    fn kill_at_a_point(&mut self, rng: &mut Rng) {
        let point = if rng.u8(..7) == 0 { "call_recorded" } else { POINTS[rng.usize(..POINTS.len())] };
        println!("{}: at {point}", self.number);
        self.host.down();
        self.up(Some(point));
        self.point = Some(point);
        let started = self.host.pid();
        let is_up = |random: &Self| started.is_some_and(alive) && random.host.pid() == started;
        for _ in 0..2 {
            if is_up(self) {
                if rng.bool() { drop(self.post(rng, true)) } else { self.post_in_presence(rng, true) }
            }
            if is_up(self) {
                self.decide(rng, true);
            }
        }
        self.point = None;
        self.host.kill_host();
        self.up(None);
    }
    fn kill_at_random(&mut self, rng: &mut Rng) {
        let text = self.post(rng, false);
        let post = self.known.posts[&text].clone();
        for _ in 0..rng.usize(..60) {
            self.get(post.person, &format!("/v1/messages/{}", post.message));
        }
        if rng.bool() {
            self.decide(rng, false);
        }
        self.host.kill_host();
        self.up(None);
    }

    fn switch_grant(&mut self, agent: usize) {
        if self.known.granted[agent] {
            self.host.ctl(&["egress", "revoke", AGENTS[agent], "127.0.0.1", "--yes"]).ok();
        } else {
            let grant =
                json!({ "host": "127.0.0.1", "port": self.site.port, "methods": ["POST"], "paths": ["/notes"] });
            self.host.change(AGENTS[agent], "egress", &grant);
        }
        self.known.granted[agent] = !self.known.granted[agent];
    }

    /// Takes a right from a person or an agent, or gives one.
    fn change_rights(&mut self, rng: &mut Rng) {
        match rng.u8(..4) {
            0 => {
                let role = if rng.bool() { "admin" } else { "member" };
                self.host.ctl(&["person", "set", "ada", "--role", role, "--yes"]).ok();
            }
            // With the token, its approvals end.
            1 => self.renew_token(1 + rng.usize(..2)),
            _ => self.switch_grant(rng.usize(..AGENTS.len())),
        }
    }

    fn renew_token(&mut self, person: usize) {
        let tokens = self.host.ctl(&["--json", "token", "list"]).ok().json();
        let of_person = |token: &&Value| token["person_name"] == PEOPLE[person] && token["state"] == "live";
        for token in tokens.as_array().expect("a list").iter().filter(of_person) {
            self.host.ctl(&["token", "revoke", token["id"].as_str().expect("an id")]).ok();
        }
        self.people[person] = Raw::of_person(&self.host, PEOPLE[person]);
    }

    /// Moves the clock of the running host ahead.
    fn wait_a_day(&mut self) {
        self.shift_ms += OVER_MS;
        self.host.shift_clock(self.shift_ms);
        self.host.kill_host();
        self.up(None);
    }
    fn step(&mut self, rng: &mut Rng) {
        let what = rng.u64(..20);
        println!("{}: step {what}", self.number);
        match what {
            0..=8 => {
                (0..=rng.usize(..BATCH_MAX)).for_each(|_| drop(self.post(rng, false)));
                (0..rng.usize(..BATCH_MAX)).for_each(|_| self.decide(rng, false));
            }
            9 | 10 => self.post_in_presence(rng, false),
            11 | 12 => {
                self.host.down();
                self.up(None);
            }
            13 => self.kill_at_random(rng),
            14 => self.kill_at_a_point(rng),
            15 | 16 => self.wait_a_day(),
            17 => self.change_rights(rng),
            18 => self.back_up(),
            _ => self.restore(),
        }
    }
}

#[test]
fn random_calls_run_once_and_only_with_a_permit() {
    let (seed, steps) = run_settings("IRONCLAW_CALLS", STEPS);
    let mut counted = Counted::default();
    let hosts: Vec<u64> = (0..steps.div_ceil(STEPS_OF_A_HOST)).collect();
    for at_once in hosts.chunks(HOSTS_AT_ONCE) {
        let runs = std::thread::scope(|scope| {
            let of_host = |number: &u64| {
                let (number, steps) = (*number, STEPS_OF_A_HOST.min(steps - number * STEPS_OF_A_HOST));
                scope.spawn(move || run(number, seed.wrapping_add(number), steps))
            };
            let running: Vec<_> = at_once.iter().map(of_host).collect();
            running.into_iter().map(|run| run.join().expect("the run holds")).collect::<Vec<_>>()
        });
        for of_host in runs {
            counted.starts += of_host.starts;
            counted.restores += of_host.restores;
            counted.add(&Counted::default(), &of_host);
        }
    }
    println!("{counted:?}");
    assert!(counted.requests > 0 && counted.starts > 1, "{counted:?}");
}
fn run(number: u64, seed: u64, steps: u64) -> Counted {
    let (mut random, mut rng) = (Random::begin(number), Rng::with_seed(seed));
    for step in 1..=steps {
        random.step(&mut rng);
        if step % STEPS_OF_A_CHECK == 0 {
            random.check_invariants();
        }
    }
    // Every run takes the most important steps at least once.
    (0..2).for_each(|_| drop(random.post(&mut rng, false)));
    random.settle();
    random.back_up();
    (0..3).for_each(|_| random.decide(&mut rng, false));
    random.kill_at_a_point(&mut rng);
    random.restore();
    random.check_invariants();
    let recorded = random.recorded();
    random.counted.add(&Counted::default(), &recorded);
    random.host.down();
    random.counted
}
