//! A fixture: a conversation in a real record, with a sandbox that requests all items that the host names.

use super::super::{Checked, ItemCache, Others, OutputBody, Reader, Unanswered, check, compose, output_labels};
use crate::channels::inbound::channel::Received;
use crate::channels::inbound::inbox::answer;
use crate::channels::inbound::scope::tests::received;
use crate::channels::inbound::{identity, inbox, routing};
use crate::channels::outbound::delivery;
use crate::gateway::decide::proof::{Approved, Direct};
use crate::gateway::writers;
use crate::registry::mcp::listing::Listing;
use crate::registry::mounts::{self, Mount};
use crate::registry::tools::levels::Room;
use crate::registry::tools::{Class, Runs};
use crate::registry::{self, Agent, AgentDraft, Mode, Role, channels};
use crate::sessions::store::tests::{draft, make_owner};
use crate::sessions::store::{self, Session};
use crate::turns::calls::{self, Call, Judged, Judgement, LeftOut, ResultBody, ResultTarget};
use crate::turns::items::{self, NewItem};
use crate::turns::turn::TurnEnd;
use crate::turns::turn::{self, Close, Turn};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{BootId, CallId, ItemId, MessageId, PersonId, QuestionId};
use ironclaw_contract::seam::change::{Engage, Packages, Senders, UnknownSenders, Wiring};
use ironclaw_contract::seam::egress::{Commands, Egress};
use ironclaw_contract::seam::message::{Author, Span};
use ironclaw_contract::seam::seal::{ItemKind, Label};
use ironclaw_contract::seam::socket::{Context, RefusalCode};
use ironclaw_judge::egress::Loopback;
use ironclaw_judge::inputs::Inputs;
use ironclaw_judge::provenance::{Labelled, Labels, Provenance};
use ironclaw_judge::{Classes, Principal};
use ironclaw_model::{Cut, Prompt};
use ironclaw_operator::{ChannelKind, MessageFile};
use ironclaw_state::WriteTx;
use ironclaw_state::keys::{ContentKey, SecretText, WrappingKey};
use ironclaw_state::seal::Sealer;
use ironclaw_store::record;
use ironclaw_store::tables::mcp as table;
use ironclaw_store::tables::messages::Kind;
use jiff::tz::{self, TimeZone};
use serde_json::{Value, json};

/// Noon of a Sunday in November.
const DAY_MS: i64 = 1_795_345_200_000;
const BYTES_MAX: u64 = 1 << 30;

pub(super) const ANN: &str = "ann";
pub(super) const BOB: &str = "bob";
const NAMES: [(&str, &str); 2] = [(ANN, "Ann"), (BOB, "Bob")];

/// The end of a turn without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// A notice about a limit.
    Notice,
    /// A notice about its model.
    ModelFailed,
    /// Its sandbox went away.
    Interrupted,
}

pub(super) struct Fixture<'a, 'tx> {
    pub(super) tx: &'a mut WriteTx<'tx>,
    pub(super) is_script: bool,
    pub(super) thread: String,
    /// The group of each message.
    pub(super) group: Option<String>,
    pub(super) room: Room,
    /// The arguments of each call, and those that were left out of it.
    pub(super) arguments: String,
    pub(super) left_out: Vec<String>,
    sealer: Sealer,
    wrapping: WrappingKey,
    owner: PersonId,
    agent: String,
}

/// Runs a test on its own record, with an agent that hears two people on one channel and answers messages that begin with `!`.
pub(super) fn with_fixture(test: impl FnOnce(Fixture<'_, '_>) + Send + 'static) {
    record::in_a_new_one(|tx, key| test(set(tx, key.wrapping_key())));
}

fn set<'a, 'tx>(tx: &'a mut WriteTx<'tx>, wrapping: WrappingKey) -> Fixture<'a, 'tx> {
    let by = make_owner(tx);
    let owner = by.id;
    for (sender, name) in NAMES {
        let person = registry::add_person(tx, name, Role::Member, owner).expect("a name");
        let identity = format!("desk:{sender}").parse().expect("an identity");
        registry::people::link(tx, &person, &identity, owner).expect("free");
    }
    let enabled_tools = crate::registry::tools::usual().map(str::to_owned).collect();
    let draft = AgentDraft { persona: "Be brief.".to_owned(), enabled_tools, ..draft("clerk") };
    let agent = writers::agents::create_agent(tx, &Direct::by_test(owner), draft).expect("a name");
    let secret = SecretText::new("secret".to_owned());
    let url = "https://example.org/".to_owned();
    let draft =
        channels::ChannelDraft { name: "desk".to_owned(), kind: ChannelKind::Webhook, url, idempotent: false, secret };
    channels::add(tx, &draft, &wrapping, &by).expect("a name");
    let channel = channels::find(tx, "desk").expect("read").expect("there");
    let wiring = Wiring { pattern: Some("^!".to_owned()), ..Wiring::new("desk".to_owned(), Engage::Pattern) };
    writers::channels::wire(tx, &Approved::by_test(owner), &channel, agent.id, &wiring).expect("wired");
    let sealer = Sealer::new(BootId::new()).expect("a sealer");
    let (thread, group, room, arguments, left_out) =
        (String::new(), None, Room::default(), "{}".to_owned(), Vec::new());
    let agent = agent.name;
    Fixture { tx, is_script: false, thread, group, room, arguments, left_out, sealer, wrapping, owner, agent }
}

impl Fixture<'_, '_> {
    fn agent(&self) -> Agent {
        registry::find_agent(self.tx, &self.agent).expect("read").expect("there")
    }

    fn session(&self) -> Session {
        let agent = self.agent().id;
        let sessions = store::list_for_agent(self.tx, agent).expect("read");
        sessions.into_iter().find(|session| session.origin.thread_id == self.thread).expect("a session")
    }

    fn key(&self) -> ContentKey {
        self.session().content_key(&self.wrapping).expect("a key")
    }

    fn turn(&self) -> Turn {
        turn::open_of(self.tx, self.session().id).expect("read").expect("an open turn")
    }

    pub(super) fn principal(&self) -> String {
        self.turn().principal
    }

    pub(super) fn say(&mut self, sender: &str, text: &str) -> MessageId {
        self.send(sender, text, Vec::new())
    }

    /// Says these words, and opens the turn that they ask for.
    pub(super) fn ask(&mut self, sender: &str, text: &str) -> MessageId {
        let message = self.say(sender, text);
        self.open();
        message
    }

    pub(super) fn send(&mut self, sender: &str, text: &str, files: Vec<MessageFile>) -> MessageId {
        let received = Received {
            channel: "desk".to_owned(),
            kind: Kind::Webhook,
            platform_id: "room".to_owned(),
            thread_id: self.thread.clone(),
            sender: sender.to_owned(),
            agent: self.agent.clone(),
            group: self.group.clone(),
            files,
            ..received(text)
        };
        let known = identity::authenticate(self.tx, received).expect("known");
        let routed =
            routing::route(self.tx, known, &crate::registry::quota::Config::default(), u32::MAX, &self.wrapping)
                .expect("heard");
        inbox::record(self.tx, &routed, &self.wrapping, &self.sealer).expect("taken").message
    }

    /// Records that a person chose an option with this text, and opens the turn that it asks for.
    pub(super) fn choose(&mut self, sender: &str, text: &str, asked_in: MessageId) -> MessageId {
        let session = self.session();
        let person = registry::person_of(self.tx, "desk", sender).expect("read").expect("a person").id;
        let answer = answer::Answer {
            session: &session,
            question: QuestionId::new(),
            asked: "Which one?",
            choice: answer::Choice::Option { number: 1, text },
            person,
            principal_kind: Principal::Person,
            scope: Classes::NONE,
            binds_contained: false,
            labels: Labels::NONE,
            root: asked_in,
        };
        let recorded = answer::record(self.tx, &answer, &self.wrapping, &self.sealer).expect("recorded");
        self.open();
        recorded.message
    }

    /// Returns the labels of an output over these items alone.
    pub(super) fn labels_over(&mut self, messages: &[MessageId]) -> Vec<Label> {
        let (mut checked, _) = self.checked();
        checked.retain(|part| part.item().is_some_and(|item| messages.iter().any(|of| of.item() == item.tuple.item)));
        assert_eq!(checked.len(), messages.len());
        let turn = self.turn();
        let others = Others::read(self.tx, &turn, &checked).expect("read");
        output_labels(&checked, &turn.principal, &others).list()
    }

    pub(super) fn notify(&mut self, text: &str) {
        let session = self.session();
        inbox::notify(self.tx, &session, text, &self.wrapping, &self.sealer).expect("notified");
    }

    /// Opens the next turn. Returns false if no message asks for one.
    pub(super) fn open(&mut self) -> bool {
        let session = self.session().id;
        let opened = turn::open_next(self.tx, session, &turn::Config::default()).expect("opened");
        if let Some(opened) = &opened {
            turn::mark_context_shown(self.tx, &opened.context).expect("marked");
            // All turns of a test have one time, unless it sets another.
            self.opened_on(0);
        }
        opened.is_some()
    }

    /// Sets the day on which the open turn was opened, at noon.
    pub(super) fn opened_on(&mut self, day: i64) {
        self.opened_after(day * 24 * 60);
    }

    /// Sets the time when the open turn was opened: minutes after noon of the first day.
    pub(super) fn opened_after(&mut self, minutes: i64) {
        let at = DAY_MS + minutes * 60 * 1000;
        let turn = self.turn().id.to_string();
        self.tx.execute("UPDATE turns SET opened_at = ?2 WHERE id = ?1", (turn, at)).expect("set");
    }

    /// Records an output of the open turn, with its calls and their results.
    pub(super) fn output(&mut self, text: &str, calls: &[(&str, Option<(bool, &str)>)], scripted: bool) -> ItemId {
        self.output_cut(text, calls, scripted, None)
    }

    fn output_cut(
        &mut self,
        text: &str,
        calls: &[(&str, Option<(bool, &str)>)],
        scripted: bool,
        cut: Option<Cut>,
    ) -> ItemId {
        let (session, turn, key) = (self.session().id, self.turn().id, self.key());
        let arguments = || self.arguments.clone();
        let call = |tool: &str| Call {
            call_id: CallId::new(),
            tool: tool.to_owned(),
            arguments: arguments(),
            inputs: Vec::new(),
        };
        let asked: Vec<Call> = calls.iter().map(|(tool, _)| call(tool)).collect();
        let left_out = |call: &Call| LeftOut { call_id: call.call_id, arguments: self.left_out.clone() };
        let left_out = asked.iter().filter(|_| !self.left_out.is_empty()).map(left_out).collect();
        let json =
            canonical::to_string(&OutputBody { cut, left_out, ..OutputBody::new(text.to_owned(), asked.clone()) });
        let spans = vec![Span { author: Author::Model, bytes: json.len() }];
        let json = Labelled::new(&*json, Provenance::Model { context: Labels::NONE });
        let new = NewItem::new(ItemId::new(), ItemKind::Output, json, spans, &key).expect("an item");
        let item = new.turn(turn).scripted(scripted).record(self.tx, session, &self.sealer).expect("recorded");
        for (position, (call, (tool, result))) in asked.into_iter().zip(calls).enumerate() {
            let judgement = Judgement::Permitted { class: Class::Read, runs: Runs::Local };
            let (id, verdict) = (call.call_id, ironclaw_judge::call::Verdict::NeedsPerson(Vec::new()));
            let by_stages =
                ironclaw_judge::call::Judgement { verdict, class: None, is_plain_read: false, trace: Vec::new() };
            let judged = Judged {
                digest: calls::digest(tool, "{}"),
                arguments: Default::default(),
                inputs: Inputs::default(),
                call,
                judgement,
                by_stages,
            };
            calls::record(self.tx, session, turn, item.tuple.item, position, &judged).expect("recorded");
            if let Some((ok, text)) = result {
                let target = ResultTarget { session, turn, key: &key, sealer: &self.sealer };
                let author = Author::Tool { tool: (*tool).to_owned() };
                let body = ResultBody::new(*ok, (*text).to_owned());
                let sealed =
                    calls::record_result(self.tx, &target, id, tool, author, Labelled::new(&body, Provenance::Tool))
                        .expect("recorded");
                calls::settle(self.tx, id, sealed.tuple.item, body.outcome).expect("settled");
            }
        }
        item.tuple.item
    }

    pub(super) fn answer(&mut self, text: &str) {
        self.answer_by(text, false, None);
    }

    /// Records an answer that has no end.
    pub(super) fn cut_answer(&mut self, text: &str, cut: Cut) {
        self.answer_by(text, false, Some(cut));
    }

    pub(super) fn scripted_answer(&mut self, text: &str) {
        self.answer_by(text, true, None);
    }

    fn answer_by(&mut self, text: &str, scripted: bool, cut: Option<Cut>) {
        let item = self.output_cut(text, &[], scripted, cut);
        let (session, turn) = (self.session(), self.turn());
        delivery::intend(self.tx, &session, Some(turn.id), item).expect("intended");
        turn::close(self.tx, &turn, Close::Answered, TurnEnd::Replied).expect("closed");
    }

    pub(super) fn end(&mut self, ends: Ending) {
        let (session, turn, key) = (self.session(), self.turn(), self.key());
        let words = match ends {
            Ending::Interrupted => {
                turn::close(self.tx, &turn, Close::Requeued, TurnEnd::SandboxEnded).expect("closed");
                return;
            }
            Ending::Notice => "I stopped: this turn reached its limit of 24 tool calls.",
            Ending::ModelFailed => {
                turn::record_model_failure(self.tx, turn.id, "overloaded", "it is overloaded").expect("noted");
                "The model endpoint `small` is overloaded. `ironctl message retry` has it answered."
            }
        };
        delivery::notify(self.tx, &session, Some(turn.id), words, &key, &self.sealer).expect("notified");
        turn::close(self.tx, &turn, Close::Answered, TurnEnd::Ended).expect("closed");
    }

    /// Retries a message, as `ironctl message retry` does.
    pub(super) fn retry(&mut self, message: MessageId) {
        ironclaw_store::tables::messages::ask_again(self.tx, message).expect("queued");
    }

    /// Records a summary of all items before the open turn.
    pub(super) fn summarise(&mut self, text: &str) {
        let (session, turn, key) = (self.session().id, self.turn(), self.key());
        let own: Vec<ItemId> = self.own();
        let (checked, _) = self.checked();
        let covered: Vec<(ItemId, u64)> =
            super::super::item_numbers(&checked).into_iter().filter(|(item, _)| !own.contains(item)).collect();
        let spans = vec![Span { author: Author::Model, bytes: text.len() }];
        let new = NewItem::new(
            ItemId::new(),
            ItemKind::Summary,
            Labelled::new(text, Provenance::Model { context: Labels::NONE }),
            spans,
            &key,
        );
        let item = new.expect("an item").turn(turn.id).record(self.tx, session, &self.sealer).expect("recorded");
        items::summary::cover(self.tx, session, item.tuple.item, &covered, turn.ordinal - 1).expect("covered");
    }

    /// Returns the messages of the open turn.
    pub(super) fn own(&self) -> Vec<ItemId> {
        let messages = turn::messages_of(self.tx, self.turn().id).expect("read");
        messages.into_iter().map(|message| message.item()).collect()
    }

    /// Returns all items that the host names to a sandbox that just woke, checked.
    pub(super) fn checked(&mut self) -> (Vec<Checked>, ItemCache) {
        let session = self.session().id;
        let named = items::live_after(self.tx, session, 0, 10_000).expect("read");
        let refs: Vec<Context> = named.iter().map(|item| Context::Ref(item.seal(&self.sealer))).collect();
        let (own, mode) = (self.own(), self.agent().mode);
        let mut cache = ItemCache::default();
        let checked = check(self.tx, session, &own, &refs, mode, BYTES_MAX, &self.sealer, &mut cache);
        (checked.expect("a context").0, cache)
    }

    /// Checks these parts in a guard mode, with a bound on the bytes.
    pub(super) fn check(
        &self,
        parts: &[Context],
        (mode, bytes_max): (Mode, u64),
        cache: &mut ItemCache,
    ) -> Result<Vec<Checked>, RefusalCode> {
        let checked = check(self.tx, self.session().id, &self.own(), parts, mode, bytes_max, &self.sealer, cache);
        checked.map(|(checked, _)| checked).map_err(|unanswered| match unanswered {
            Unanswered::Refused(refused) => refused.code,
            Unanswered::Failed(error) => panic!("{error}"),
        })
    }

    /// Drops all items that no open turn needs.
    pub(super) fn drop_items(&mut self) {
        let config = items::Config { session_items_max: 0, ..items::Config::default() };
        items::enforce_retention(self.tx, self.session().id, &config).expect("dropped");
    }

    pub(super) fn prompt(&mut self) -> Prompt {
        let (checked, cache) = self.checked();
        self.prompt_of(checked, cache)
    }

    pub(super) fn prompt_of(&mut self, checked: Vec<Checked>, mut cache: ItemCache) -> Prompt {
        let (agent, turn, key) = (self.agent(), self.turn(), self.key());
        let zone = TimeZone::fixed(tz::offset(1));
        let (loopback, room) = (Loopback::Refused, self.room);
        let reader = Reader { agent: &agent, turn: &turn, is_script: self.is_script, zone: &zone, loopback, room };
        compose(self.tx, &reader, checked, &key, &mut cache).expect("a prompt")
    }

    /// Returns the request for Chat Completions.
    pub(super) fn request(&mut self) -> Value {
        let [request, _] = ironclaw_model::requests(&self.prompt());
        request
    }

    pub(super) fn grant(&mut self, target: &str, read_only: bool) {
        let agent = self.agent().id;
        let mut all = mounts::list_for_agent(self.tx, agent).expect("read");
        all.push(Mount { source: format!("/srv{target}").into(), target: target.to_owned(), read_only, mine: None });
        writers::mounts::set(self.tx, &Approved::by_test(self.owner), agent, &all).expect("set");
    }

    /// Registers and confirms a server with these tools, and grants them.
    pub(super) fn serve(&mut self, server: &str, tools: &[String], description: &str) {
        let schema = json!({ "type": "object", "properties": { "day": { "type": "string" } } });
        let listed = |name: &String| json!({ "name": name, "description": description, "inputSchema": schema });
        let tools_listed = tools.iter().map(listed).collect();
        let listing = Listing { era: "session".to_owned(), tools: tools_listed, ..Listing::default() };
        let described = json!({ "name": server, "url": "https://example.org/mcp" });
        let described = serde_json::from_value(described).expect("a registration");
        let agent = self.agent().id;
        table::put_server(self.tx, &described, None, DAY_MS).expect("put");
        table::set_seen(self.tx, server, &listing.text(), DAY_MS).expect("set");
        table::confirm_server(self.tx, server, None, &std::collections::BTreeMap::new(), DAY_MS).expect("confirmed");
        table::put_grant(self.tx, agent, server, tools).expect("granted");
    }

    /// Grants a host of the network.
    pub(super) fn reach(&mut self, host: &str, methods: &[&str], paths: &[&str], commands: Option<Commands>) {
        let all = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let granted = Egress {
            host: host.to_owned(),
            port: None,
            methods: all(methods),
            paths: all(paths),
            secret: None,
            upload_bytes_max: None,
            commands,
        };
        let agent = self.agent().id;
        ironclaw_store::tables::agents::put_egress(self.tx, agent, &granted, &[]).expect("granted");
    }

    /// Lets strangers talk in the room.
    pub(super) fn open_to_strangers(&mut self) {
        let (from, unknown) = (Senders::All, UnknownSenders::Public);
        let wiring =
            Wiring { from, unknown, pattern: Some("^!".to_owned()), ..Wiring::new("desk".to_owned(), Engage::Pattern) };
        let (agent, channel) = (self.agent().id, channels::find(self.tx, "desk").expect("read").expect("there"));
        writers::channels::wire(self.tx, &Approved::by_test(self.owner), &channel, agent, &wiring).expect("wired");
    }

    pub(super) fn install(&mut self, apt: &[&str]) {
        let agent = self.agent().id;
        let packages = Packages { apt: apt.iter().map(|&name| name.to_owned()).collect(), ..Packages::default() };
        let layer = Digest::of(b"layer");
        writers::software::set(self.tx, &Approved::by_test(self.owner), agent, Some((&packages, &layer))).expect("set");
    }

    pub(super) fn enable(&mut self, tools: &[&str]) {
        let agent = self.agent();
        let tools: Vec<String> = tools.iter().map(|&tool| tool.to_owned()).collect();
        writers::agents::set_tools(self.tx, &Approved::by_test(self.owner), &agent, &tools).expect("set");
    }
}
