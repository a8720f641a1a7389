//! Load with kills: people send messages over a channel while the test kills host and sandboxes at random. Each message is answered
//! exactly once or has the receipt `unknown`, no message is lost, and the ledger is valid after each kill.
//!
//! `IRONCLAW_SEED` repeats a run, and `IRONCLAW_LOAD_MESSAGES` and `IRONCLAW_LOAD_KILLS` set its length. See `kill`.
#![allow(clippy::print_stdout)] // the printed seed repeats a failed run

use crate::chaos::kill::{awake_process, check_every_start_recorded, each_settled_once, retry, run_settings, setting};
use crate::support::client::{Client, try_exchange};
use crate::support::hooks::{Hook, Receiver, now};
use crate::support::host_fixture::{Build, TestHost, kill, wait_for};
use crate::support::processes::{Process, no_process_uses};
use fastrand::Rng;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io;
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The number of messages and kills without settings in the environment.
const MESSAGES: u64 = 60;
const KILLS: u64 = 8;

/// The number of concurrent conversations, and of messages in flight in each one.
const CONVERSATIONS: u64 = 4;
const IN_FLIGHT: u64 = 2;

/// At most one in `MISSED_SHARE` messages may have no received answer. This is ten times the observed share.
const MISSED_SHARE: u64 = 4;

/// The longest pause between an accepted message and a kill. A warm round takes a few milliseconds.
const PAUSE_MS_MAX: u64 = 60;

/// The timeout of one poll for an answer.
const WAIT: Duration = Duration::from_secs(5);

/// A channel by which people reach the host.
trait Channel: Sync {
    /// Sends a message of a conversation and returns its id. A second message with the same event id is a duplicate.
    fn say(&self, conversation: u64, text: &str, event: &str) -> io::Result<String>;

    /// Waits until a message is finished and returns its view.
    fn message(&self, id: &str) -> io::Result<Value>;

    /// Returns whether the outcome of a delivery can be unknown. This is impossible if the channel recognizes a repeated delivery.
    fn can_be_unknown(&self) -> bool;

    /// Updates the address of the host after a restart.
    fn follow_restart(&self, host: &TestHost);

    /// Checks the received answers after all messages are finished.
    fn check(&self, settled: &[Settled], seed: u64);
}

/// The loopback channel of an operator. An answer arrives with its row in the record.
struct Loopback(Client);

impl Channel for Loopback {
    fn say(&self, conversation: u64, text: &str, event: &str) -> io::Result<String> {
        let taken = self.0.send_in("a", &format!("t{conversation}"), text, event)?;
        Ok(taken["message_id"].as_str().unwrap_or_default().to_owned())
    }

    fn message(&self, id: &str) -> io::Result<Value> {
        self.0.message(id, WAIT)
    }

    fn can_be_unknown(&self) -> bool {
        false
    }

    fn follow_restart(&self, _: &TestHost) {}

    fn check(&self, settled: &[Settled], seed: u64) {
        for message in settled {
            assert!(!message.reply.is_empty(), "seed {seed}: {message:?}");
        }
    }
}

/// A webhook with a receiver that accepts every delivery. If `idempotent`, it recognizes a repeated delivery.
struct Webhook {
    hook: Mutex<Hook>,
    receiver: Receiver,
    client: Client,
    idempotent: bool,
}

impl Webhook {
    fn open(host: &TestHost, idempotent: bool) -> Self {
        let receiver = Receiver::accepting();
        let more: &[&str] = if idempotent { &["--idempotent"] } else { &[] };
        let hook = Mutex::new(Hook::add(host, "shop", &receiver, more));
        Self { hook, receiver, client: Client::of(host), idempotent }
    }
}

impl Channel for Webhook {
    fn say(&self, conversation: u64, text: &str, event: &str) -> io::Result<String> {
        let hook = self.hook.lock().expect("no holder panics").clone();
        let body = json!({ "sender": "ann", "thread": format!("t{conversation}"), "text": text }).to_string();
        let at = now();
        let (stamp, signature) = (at.to_string(), hook.sign(event, at, &body));
        let headers =
            [("host", "x"), ("webhook-id", event), ("webhook-timestamp", &stamp), ("webhook-signature", &signature)];
        let stream = TcpStream::connect(hook.address())?;
        stream.set_read_timeout(Some(WAIT))?;
        let (status, _, answer) = try_exchange(stream, "POST", &hook.path(), &headers, &body)?;
        match (status, answer["message_id"].as_str()) {
            (200, Some(id)) => Ok(id.to_owned()),
            _ => Err(io::Error::other(format!("{status} {answer}"))),
        }
    }

    fn message(&self, id: &str) -> io::Result<Value> {
        self.client.message(id, WAIT)
    }

    fn can_be_unknown(&self) -> bool {
        !self.idempotent
    }

    fn follow_restart(&self, host: &TestHost) {
        self.hook.lock().expect("no holder panics").follow_restart(host);
    }

    fn check(&self, settled: &[Settled], seed: u64) {
        let replies = self.receiver.replies();
        let ids: HashSet<&str> = replies.iter().map(|reply| reply.id.as_str()).collect();
        let names = |reply: &Value, id: &str| {
            reply["message_ids"].as_array().is_some_and(|ids| ids.iter().any(|named| named == id))
        };
        assert!(self.idempotent || ids.len() == replies.len(), "seed {seed}: the host repeated a delivery");
        for message in settled {
            let with_it = replies.iter().filter(|reply| names(&reply.body, &message.id)).map(|reply| reply.id.as_str());
            let deliveries = with_it.collect::<HashSet<_>>().len();
            assert!(deliveries == 1 || message.unknown && deliveries == 0, "seed {seed}: {message:?}: {deliveries}");
        }
    }
}
#[derive(Debug)]
struct Settled {
    id: String,
    conversation: u64,
    /// The batch in its conversation. One turn may answer all messages of a batch.
    batch: usize,
    /// A word that only this message and its answer contain.
    word: String,
    reply: String,
    notice: bool,
    unknown: bool,
}

#[test]
fn load_over_loopback_answers_each_message_once() {
    let host = TestHost::own(Build::Plain).started_with("a");
    let channel = Loopback(Client::of(&host));
    run_load(&host, &channel);
}

#[test]
fn load_over_a_webhook_answers_once_or_leaves_unknown_receipt() {
    let host = crate::support::hooks::new_host(Build::Plain, "requests_per_minute = 100000\n");
    let channel = Webhook::open(&host, false);
    run_load(&host, &channel);
}

#[test]
fn load_over_an_idempotent_webhook_answers_each_message_once() {
    let host = crate::support::hooks::new_host(Build::Plain, "requests_per_minute = 100000\n");
    let channel = Webhook::open(&host, true);
    run_load(&host, &channel);
}

fn run_load(host: &TestHost, channel: &dyn Channel) {
    let (seed, messages) = run_settings("IRONCLAW_LOAD_MESSAGES", MESSAGES);
    let kills = setting("IRONCLAW_LOAD_KILLS").unwrap_or(KILLS);
    println!("IRONCLAW_LOAD_KILLS={kills}");
    let taken = AtomicU64::new(0);
    let (mut all, starts) = std::thread::scope(|scope| {
        let taken = &taken;
        let talks: Vec<_> = (0..CONVERSATIONS)
            .map(|number| (number, (number..messages).step_by(CONVERSATIONS as usize).collect::<Vec<u64>>()))
            .map(|(number, part)| scope.spawn(move || send_conversation(channel, number, &part, taken)))
            .collect();
        let starts = 1 + kill_in_stream(host, channel, &mut Rng::with_seed(seed), (messages, kills), taken);
        let all: Vec<Settled> =
            talks.into_iter().flat_map(|talk| talk.join().expect("the sender got its answers")).collect();
        (all, starts)
    });
    all.sort_by(|a, b| a.id.cmp(&b.id));
    let count = |is: fn(&Settled) -> bool| all.iter().filter(|message| is(message)).count();
    println!(
        "{} messages, {kills} kills, {starts} starts: {} answered, {} with a notice of the host, {} unknown",
        all.len(),
        count(|message| !message.notice && !message.unknown),
        count(|message| message.notice),
        count(|message| message.unknown),
    );
    assert_eq!(all.len() as u64, messages, "seed {seed}");
    // A host that answers no message would also be consistent, so the run needs a minimum of answers.
    let answered = count(|message| !message.notice && !message.unknown) as u64;
    assert!(answered >= messages - messages / MISSED_SHARE, "seed {seed}: only {answered} answers arrived");
    check(host, channel, &all, seed);
    check_every_start_recorded(host, starts, seed);
    // Another start must not repeat finished work.
    let sent = ["delivery.intended", "delivery.received"].map(|what| host.entries(what).len());
    host.restart();
    check(host, channel, &all, seed);
    check_every_start_recorded(host, starts, seed);
    assert_eq!(["delivery.intended", "delivery.received"].map(|what| host.entries(what).len()), sent, "seed {seed}");
    host.down();
    no_process_uses(&host.home);
}

/// Checks that every message is finished exactly once and has its own answer.
fn check(host: &TestHost, channel: &dyn Channel, all: &[Settled], seed: u64) {
    let ids: Vec<String> = all.iter().map(|message| message.id.clone()).collect();
    let unknown: HashSet<String> =
        all.iter().filter(|message| message.unknown).map(|message| message.id.clone()).collect();
    assert!(unknown.is_empty() || channel.can_be_unknown(), "seed {seed}: {unknown:?}");
    each_settled_once(host, &ids, &unknown, seed);
    channel.check(all, seed);
    // In a turn with several messages, the scripted model answers only the last one.
    for message in all.iter().filter(|message| !message.notice && !message.unknown) {
        let mut own =
            all.iter().filter(|other| (other.conversation, other.batch) == (message.conversation, message.batch));
        // A call that was in flight when its sandbox died does not run again, and the answer says so.
        let is_unknown = message.reply.contains("the outcome of this call is unknown");
        assert!(is_unknown || own.any(|other| message.reply.contains(&other.word)), "seed {seed}: {message:?}");
    }
}

/// Sends the messages of one conversation in batches and waits for their answers.
fn send_conversation(channel: &dyn Channel, conversation: u64, part: &[u64], taken: &AtomicU64) -> Vec<Settled> {
    let mut all = Vec::new();
    for (batch, together) in part.chunks(IN_FLIGHT as usize).enumerate() {
        let mut open = Vec::new();
        for number in together {
            let word = format!("word-{number:06}");
            let text = match number % 5 {
                4 => format!("write {word}.txt: content"),
                _ => format!("echo {word}"),
            };
            // A request without an answer may have been accepted. The event id makes a retry idempotent.
            let id = retry("take a message", || channel.say(conversation, &text, &format!("event-{number}")));
            taken.fetch_add(1, Ordering::SeqCst);
            open.push((id, word));
        }
        for (id, word) in open {
            let view = retry("finish a message", || finished(channel.message(&id)?));
            let unknown = view["receipt"] == "unknown";
            let reply = view["reply"].as_str().unwrap_or_default().to_owned();
            all.push(Settled { id, conversation, batch, word, reply, notice: view["notice"] == true, unknown });
        }
    }
    all
}

fn finished(view: Value) -> io::Result<Value> {
    if view["status"] == "delivered" || view["receipt"] == "unknown" {
        return Ok(view);
    }
    Err(io::Error::new(io::ErrorKind::WouldBlock, view.to_string()))
}

/// Kills the host or a sandbox at random moments. Returns the number of restarts.
fn kill_in_stream(
    host: &TestHost,
    channel: &dyn Channel,
    rng: &mut Rng,
    (messages, kills): (u64, u64),
    taken: &AtomicU64,
) -> usize {
    let mut moments: Vec<u64> = (0..kills).map(|_| rng.u64(..messages)).collect();
    moments.sort_unstable();
    let mut starts = 0;
    for moment in moments {
        wait_for("the next messages", || taken.load(Ordering::SeqCst) >= moment);
        std::thread::sleep(Duration::from_millis(rng.u64(..PAUSE_MS_MAX)));
        let sandbox = if rng.u64(..2) == 0 { awake_process(&host.status(), "/pid", rng) } else { None };
        match sandbox {
            Some(sandbox) => {
                kill(sandbox.pid);
                wait_for("the end of the sandbox", || !sandbox.is_alive());
                host.ctl(&["audit", "verify"]).ok();
            }
            // The random choice is the host, or no sandbox is awake.
            None => {
                let host_process = Process::of(host.pid().expect("it runs")).expect("it runs");
                host.kill_host();
                wait_for("the end of the host", || !host_process.is_alive());
                host.ctl(&["audit", "verify"]).ok();
                host.up();
                channel.follow_restart(host);
                starts += 1;
            }
        }
    }
    starts
}
