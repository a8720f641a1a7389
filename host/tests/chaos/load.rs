//! A stream of messages over a channel while host and sandboxes are killed at random: each message is answered exactly once or has
//! an explicit unknown receipt, none is lost, and the ledger is whole after each death.
//!
//! `IRONCLAW_STORM_SEED` repeats a run, `IRONCLAW_STORM_MESSAGES` and `IRONCLAW_STORM_KILLS` make it longer. Next: `moments`.
#![allow(clippy::print_stdout)] // the seed of a run that failed is what repeats it

use crate::chaos::kill::{awake_process, each_settled_once, every_start_is_known, insist, setting};
use crate::support::client::{self, Client, try_exchange};
use crate::support::hooks::{Hook, Receiver, now};
use crate::support::host_fixture::{Build, World, kill, wait_for};
use crate::support::processes::{Process, nobody_looks_into};
use fastrand::Rng;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io;
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Messages and kills of one run, unless the environment says otherwise.
const MESSAGES: u64 = 60;
const KILLS: u64 = 8;

/// Conversations at once, each with so many messages in flight.
const CONVERSATIONS: u64 = 4;
const TOGETHER: u64 = 2;

/// At most one message of so many ends without an answer that arrived for certain; ten times what was seen.
const MISSED_SHARE: u64 = 4;

/// The longest between a message being taken and a kill; a warm round takes a few milliseconds.
const PAUSE_MS_MAX: u64 = 60;

/// The longest that one question waits for an answer, before it is asked again.
const WAIT: Duration = Duration::from_secs(5);

/// A way on which people reach the host.
trait Channel: Sync {
    /// Hands in what a conversation says; the same event is the same message. Gives the message's id.
    fn say(&self, conversation: u64, text: &str, event: &str) -> io::Result<String>;

    /// The message as the host shows it, after a wait for its end.
    fn message(&self, id: &str) -> io::Result<Value>;

    /// Whether the outcome of a sending can be unknown; never where the channel knows what it was sent before.
    fn can_be_unknown(&self) -> bool;

    /// The host was started again.
    fn again(&self, world: &World);

    /// What the other end has seen, once everything is settled.
    fn check(&self, settled: &[Settled], seed: u64);
}

/// The operator's own channel: the other end is the record itself.
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

    fn again(&self, _: &World) {}

    fn check(&self, settled: &[Settled], seed: u64) {
        for message in settled {
            assert!(!message.reply.is_empty(), "seed {seed}: {message:?}");
        }
    }
}

/// A webhook whose receiver takes everything, and knows what it had before if `idempotent`.
struct Webhook {
    hook: Mutex<Hook>,
    receiver: Receiver,
    client: Client,
    idempotent: bool,
}

impl Webhook {
    fn open(world: &World, idempotent: bool) -> Self {
        let receiver = Receiver::glad();
        let more: &[&str] = if idempotent { &["--idempotent"] } else { &[] };
        let hook = Mutex::new(Hook::add(world, "shop", &receiver, more));
        Self { hook, receiver, client: Client::of(world), idempotent }
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

    fn again(&self, world: &World) {
        self.hook.lock().expect("no holder panics").again(world);
    }

    fn check(&self, settled: &[Settled], seed: u64) {
        let replies = self.receiver.replies();
        let ids: HashSet<&str> = replies.iter().map(|reply| reply.id.as_str()).collect();
        let names = |reply: &Value, id: &str| {
            reply["message_ids"].as_array().is_some_and(|ids| ids.iter().any(|named| named == id))
        };
        assert!(self.idempotent || ids.len() == replies.len(), "seed {seed}: nothing was sent again by itself");
        for message in settled {
            let with_it = replies.iter().filter(|reply| names(&reply.body, &message.id)).map(|reply| reply.id.as_str());
            let deliveries = with_it.collect::<HashSet<_>>().len();
            assert!(deliveries == 1 || message.unknown && deliveries == 0, "seed {seed}: {message:?}: {deliveries}");
        }
    }
}

/// A message that is over.
#[derive(Debug)]
struct Settled {
    id: String,
    conversation: u64,
    /// Which of its conversation's turns of speech it came with: those of one may be answered together.
    breath: usize,
    /// A word that stands in no other message, and in the agent's answer to this one.
    word: String,
    reply: String,
    /// The host's own words in place of an answer.
    notice: bool,
    /// Nobody knows whether the answer arrived.
    unknown: bool,
}

#[test]
fn storm_over_loopback_answers_each_message_once() {
    let world = World::with(client::own(), Build::Plain, None);
    world.up();
    world.agent("a");
    let channel = Loopback(Client::of(&world));
    storm(&world, &channel);
}

#[test]
fn storm_over_a_webhook_answers_once_or_leaves_unknown_receipt() {
    let world = crate::support::hooks::world(Build::Plain, "requests_per_minute = 100000\n");
    let channel = Webhook::open(&world, false);
    storm(&world, &channel);
}

#[test]
fn storm_over_an_idempotent_webhook_answers_each_message_once() {
    let world = crate::support::hooks::world(Build::Plain, "requests_per_minute = 100000\n");
    let channel = Webhook::open(&world, true);
    storm(&world, &channel);
}

fn storm(world: &World, channel: &dyn Channel) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as u64;
    let seed = setting("IRONCLAW_STORM_SEED").unwrap_or(now);
    let messages = setting("IRONCLAW_STORM_MESSAGES").unwrap_or(MESSAGES);
    let kills = setting("IRONCLAW_STORM_KILLS").unwrap_or(KILLS);
    println!("IRONCLAW_STORM_SEED={seed} IRONCLAW_STORM_MESSAGES={messages} IRONCLAW_STORM_KILLS={kills}");
    let taken = AtomicU64::new(0);
    let (mut all, starts) = std::thread::scope(|scope| {
        let taken = &taken;
        let talks: Vec<_> = (0..CONVERSATIONS)
            .map(|number| (number, (number..messages).step_by(CONVERSATIONS as usize).collect::<Vec<u64>>()))
            .map(|(number, part)| scope.spawn(move || talk(channel, number, &part, taken)))
            .collect();
        let starts = 1 + kill_all(world, channel, &mut Rng::with_seed(seed), (messages, kills), taken);
        let all: Vec<Settled> = talks.into_iter().flat_map(|talk| talk.join().expect("it was served")).collect();
        (all, starts)
    });
    all.sort_by(|a, b| a.id.cmp(&b.id));
    let count = |is: fn(&Settled) -> bool| all.iter().filter(|message| is(message)).count();
    println!(
        "{} messages, {kills} kills, {starts} starts: {} answered, {} with the host's notice, {} unknown",
        all.len(),
        count(|message| !message.notice && !message.unknown),
        count(|message| message.notice),
        count(|message| message.unknown),
    );
    assert_eq!(all.len() as u64, messages, "seed {seed}");
    // A host that answers nobody would be whole as well.
    let answered = count(|message| !message.notice && !message.unknown) as u64;
    assert!(answered >= messages - messages / MISSED_SHARE, "seed {seed}: only {answered} were answered");
    check(world, channel, &all, seed);
    every_start_is_known(world, starts, seed);
    // What is over stays over: another start sends nothing again.
    let sent = ["delivery.intended", "delivery.received"].map(|what| world.entries(what).len());
    world.down();
    world.up();
    check(world, channel, &all, seed);
    every_start_is_known(world, starts, seed);
    assert_eq!(["delivery.intended", "delivery.received"].map(|what| world.entries(what).len()), sent, "seed {seed}");
    world.down();
    nobody_looks_into(&world.home);
}

/// Every message is over in the record exactly once, and the answer is the one to it.
fn check(world: &World, channel: &dyn Channel, all: &[Settled], seed: u64) {
    let ids: Vec<String> = all.iter().map(|message| message.id.clone()).collect();
    let unknown: HashSet<String> =
        all.iter().filter(|message| message.unknown).map(|message| message.id.clone()).collect();
    assert!(unknown.is_empty() || channel.can_be_unknown(), "seed {seed}: {unknown:?}");
    each_settled_once(world, &ids, &unknown, seed);
    channel.check(all, seed);
    // A turn that answers several messages at once gets the script's answer to the last of them.
    for message in all.iter().filter(|message| !message.notice && !message.unknown) {
        let mut own =
            all.iter().filter(|other| (other.conversation, other.breath) == (message.conversation, message.breath));
        // A call that was under way when its sandbox died is not run again, and the answer says so.
        let is_unknown = message.reply.contains("the outcome of this call is unknown");
        assert!(is_unknown || own.any(|other| message.reply.contains(&other.word)), "seed {seed}: {message:?}");
    }
}

/// Says its part of the messages, some at a time, and waits for their answers.
fn talk(channel: &dyn Channel, conversation: u64, part: &[u64], taken: &AtomicU64) -> Vec<Settled> {
    let mut all = Vec::new();
    for (breath, together) in part.chunks(TOGETHER as usize).enumerate() {
        let mut open = Vec::new();
        for number in together {
            let word = format!("word-{number:06}");
            let text = match number % 5 {
                4 => format!("write {word}.txt: content"),
                _ => format!("echo {word}"),
            };
            // The sender does not know whether a message that got no answer was taken: the event says that it is the same.
            let id = insist("take a message", || channel.say(conversation, &text, &format!("event-{number}")));
            taken.fetch_add(1, Ordering::SeqCst);
            open.push((id, word));
        }
        for (id, word) in open {
            let view = insist("settle a message", || over(channel.message(&id)?));
            let unknown = view["receipt"] == "unknown";
            let reply = view["reply"].as_str().unwrap_or_default().to_owned();
            all.push(Settled { id, conversation, breath, word, reply, notice: view["notice"] == true, unknown });
        }
    }
    all
}

fn over(view: Value) -> io::Result<Value> {
    if view["status"] == "delivered" || view["receipt"] == "unknown" {
        return Ok(view);
    }
    Err(io::Error::new(io::ErrorKind::WouldBlock, view.to_string()))
}

/// Kills the host or a sandbox at moments of chance, spread over the stream; returns how often the host was started.
fn kill_all(
    world: &World,
    channel: &dyn Channel,
    chance: &mut Rng,
    (messages, kills): (u64, u64),
    taken: &AtomicU64,
) -> usize {
    let mut moments: Vec<u64> = (0..kills).map(|_| chance.u64(..messages)).collect();
    moments.sort_unstable();
    let mut starts = 0;
    for moment in moments {
        wait_for("the stream to go on", || taken.load(Ordering::SeqCst) >= moment);
        std::thread::sleep(Duration::from_millis(chance.u64(..PAUSE_MS_MAX)));
        let sandbox = if chance.u64(..2) == 0 { awake_process(&world.status(), "/pid", chance) } else { None };
        match sandbox {
            Some(sandbox) => {
                kill(sandbox.pid);
                wait_for("the sandbox to be gone", || !sandbox.lives());
                world.ctl(&["audit", "verify"]).ok();
            }
            // Nobody may be awake just now.
            None => {
                let host = Process::of(world.pid().expect("it runs")).expect("it runs");
                world.kill_host();
                wait_for("the host to be gone", || !host.lives());
                world.ctl(&["audit", "verify"]).ok();
                world.up();
                channel.again(world);
                starts += 1;
            }
        }
    }
    starts
}
