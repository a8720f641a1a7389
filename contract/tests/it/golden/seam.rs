//! One sample of every shape between host and sandbox. Every value is fixed. See `rows`.

use super::{Shape, every, rewritten, shape, shape_by_bytes, skills, word};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{AgentId, BootId, ItemId, PersonId, SessionId};
use ironclaw_contract::seam::change::{
    Access, AgentRole, AskedClasses, CatchUp, Change, ChangeKind, Engage, Group, GuardMode, Ignored, McpConfirm,
    McpHost, McpOauth, McpRegister, McpVariable, Mount, Packages, Payload, Senders, Settings, Sharing, UnknownSenders,
    WrittenBy,
};
use ironclaw_contract::seam::egress::Commands;
use ironclaw_contract::seam::link::{Fatal, FromSandbox, Hello, TurnLimits, Welcome};
use ironclaw_contract::seam::message::{Author, Span, Status};
use ironclaw_contract::seam::outbound::{Content, EndReason, Progress, RawRow};
use ironclaw_contract::seam::seal::{self, ItemKind, Label, Ref, Tuple};
use ironclaw_contract::seam::socket::{
    self, Call, Context, Item, Purpose, RefusalCode, Request, Response, Text, Verdict,
};
use std::collections::BTreeMap;

/// Returns an id whose last two characters are `number`.
pub(super) fn id<T: std::str::FromStr>(prefix: &str, number: u8) -> T {
    let text = format!("{prefix}_01kagq8t00000000000000{number:04}");
    text.parse().ok().expect("a ULID in Crockford's alphabet")
}

pub(super) fn digest(byte: u8) -> Digest {
    Digest::from_bytes([byte; 32])
}

/// A Wednesday in November 2026, in milliseconds.
pub(super) const AT: i64 = 1_795_000_000_123;

pub(super) fn reference(kind: ItemKind) -> Ref {
    Ref {
        item: id("itm", 1),
        kind,
        seq: 4,
        issued_at: AT,
        boot: id("boot", 1),
        digest: digest(0xd1),
        seal: digest(0x5e),
    }
}

pub(super) fn shapes() -> Vec<Shape> {
    let groups = [words(), link(), requests(), responses(), seals(), outbound(), changes()];
    groups.into_iter().flatten().collect()
}

/// Returns the closed lists. Their type writes `ALL` itself, so a new word shows as a difference.
fn words() -> Vec<Shape> {
    vec![
        word("words.status", Status::ALL),
        word("words.item_kind", ItemKind::ALL),
        word("words.label", Label::ALL),
        word("words.purpose", Purpose::ALL),
        word("words.refusal_code", RefusalCode::ALL),
        word("words.change_kind", ChangeKind::ALL),
        word("words.engage", Engage::ALL),
        word("words.senders", Senders::ALL),
        word("words.unknown_senders", UnknownSenders::ALL),
        word("words.ignored", Ignored::ALL),
        word("words.sharing", Sharing::ALL),
        word("words.access", Access::ALL),
        word("words.agent_role", AgentRole::ALL),
        word("words.commands", Commands::ALL),
        word("words.guard_mode", GuardMode::ALL),
        word("words.catch_up", CatchUp::ALL),
        word("words.written_by", WrittenBy::ALL),
    ]
}

fn link() -> Vec<Shape> {
    let hello = || Hello { fingerprint: digest(0xf1).to_string(), version: "0.1.0".to_owned() };
    let fatal = || Fatal { fatal: "cannot restrict itself: Landlock ABI 0".to_owned() };
    let turn =
        TurnLimits { model_calls_max: 16, tool_calls_max: 8, result_bytes_max: 1_048_576, context_bytes_max: 262_144 };
    let welcome = |failpoint| Welcome { session: id("ses", 1), key: digest(0xaa).to_string(), turn, failpoint };
    let mut shapes = vec![
        shape("link.hello", hello()),
        shape("link.fatal", fatal()),
        shape("link.turn_limits", turn),
        shape_by_bytes("link.welcome", &welcome(None)),
        shape_by_bytes("link.welcome.failpoint", &welcome(Some("outbound_commit".to_owned()))),
    ];
    shapes.extend(every!(FromSandbox {
        "link.from_sandbox.hello": FromSandbox::Hello(_) => FromSandbox::Hello(hello());
        "link.from_sandbox.fatal": FromSandbox::Fatal(_) => FromSandbox::Fatal(fatal());
    }));
    shapes
}

fn requests() -> Vec<Shape> {
    let (turn, call_id, output) = (id("trn", 1), id("call", 1), id("itm", 1));
    let earlier = || socket::Earlier { output, from: 2, upto: 40 };
    let mut shapes = every!(Request {
        "request.generate": Request::Generate { .. } => Request::Generate {
            turn,
            purpose: Purpose::Reply,
            refs: vec![Context::Ref(reference(ItemKind::Message)), Context::Ref(reference(ItemKind::Output))],
        };
        "request.report": Request::Report { .. } => Request::Report {
            turn,
            call_id,
            ok: true,
            body: "two lines\nand a \"quote\", é, 😀 and \u{2028}".to_owned(),
        };
        "request.result": Request::Result { .. } => Request::Result { turn, call_id };
        "request.items": Request::Items { .. } => Request::Items { after_seq: 0 };
    });
    shapes.extend(every!(Context {
        "context.ref": Context::Ref(_) => Context::Ref(reference(ItemKind::Result));
        "context.earlier": Context::Earlier(_) => Context::Earlier(earlier());
        "context.text": Context::Text(_) => Context::Text(Text { text: "words without a seal".to_owned() });
    }));
    shapes.extend([shape("earlier", earlier()), shape("text", Text { text: "words without a seal".to_owned() })]);
    shapes
}

fn responses() -> Vec<Shape> {
    let call = |number, verdict| Call {
        call_id: id("call", number),
        tool: "read_file".to_owned(),
        arguments: r#"{"path":"notes.md"}"#.to_owned(),
        verdict,
    };
    let refused = || Verdict::Refused { item: reference(ItemKind::Result), bytes: 57 };
    let done = || Verdict::Done { item: reference(ItemKind::Result), bytes: 21 };
    let item = |turn| Item { reference: reference(ItemKind::Message), bytes: 12, turn };
    let mut shapes = every!(Response {
        "response.output": Response::Output { .. } => Response::Output {
            item: reference(ItemKind::Output),
            bytes: 0,
            calls: vec![call(1, Verdict::Local), call(2, Verdict::Row), call(3, refused()), call(4, Verdict::Await)],
        };
        "response.sealed": Response::Sealed { .. } => Response::Sealed { item: reference(ItemKind::Result), bytes: 1024 };
        "response.items": Response::Items { .. } => Response::Items {
            items: vec![item(None), item(Some(id("trn", 1)))],
            more: true,
        };
        "response.refused": Response::Refused { .. } => Response::Refused {
            code: RefusalCode::Turn,
            message: "trn_01kagq8t000000000000000001 is closed".to_owned(),
        };
    });
    shapes.extend(every!(Verdict {
        "verdict.local": Verdict::Local => Verdict::Local;
        "verdict.row": Verdict::Row => Verdict::Row;
        "verdict.await": Verdict::Await => Verdict::Await;
        "verdict.done": Verdict::Done { .. } => done();
        "verdict.refused": Verdict::Refused { .. } => refused();
    }));
    shapes.push(shape("item", item(None)));
    shapes.push(shape("item.turn", item(Some(id("trn", 1)))));
    shapes.push(shape("call", call(1, Verdict::Local)));
    shapes
}

fn seals() -> Vec<Shape> {
    let span = |author| Span { author, bytes: 11 };
    let mut shapes = every!(Span {
        "span.person": Span { author: Author::Person { .. }, .. } => span(Author::Person { person: id::<PersonId>("per", 1) });
        "span.quoted": Span { author: Author::Quoted, .. } => span(Author::Quoted);
        "span.file": Span { author: Author::File { .. }, .. } => span(Author::File { name: "notes.md".to_owned() });
        "span.model": Span { author: Author::Model, .. } => span(Author::Model);
        "span.agent": Span { author: Author::Agent { .. }, .. } => span(Author::Agent { agent: id::<AgentId>("agt", 1) });
        "span.tool": Span { author: Author::Tool { .. }, .. } => span(Author::Tool { tool: "read_file".to_owned() });
        "span.host": Span { author: Author::Host, .. } => span(Author::Host);
    });
    shapes.push(shape("author", Author::Tool { tool: "read_file".to_owned() }));
    shapes.push(shape("ref", reference(ItemKind::Message)));
    shapes.push(tuple("seal.tuple.message", &message_tuple()));
    shapes.push(tuple("seal.tuple.result", &result_tuple()));
    shapes
}

fn message_tuple() -> Tuple {
    Tuple {
        session: id::<SessionId>("ses", 1),
        item: id::<ItemId>("itm", 1),
        kind: ItemKind::Message,
        seq: 4,
        issued_at: AT,
        boot: id::<BootId>("boot", 1),
        turn: None,
        call: None,
        tool: None,
        hop: 0,
        authors: r#"[{"author":{"by":"quoted"},"bytes":11}]"#.to_owned(),
        labels: vec![Label::AgentKernel, Label::UserSurfaceInput],
        scope: "declared:read send".to_owned(),
        digest: digest(0xd1),
    }
}

fn result_tuple() -> Tuple {
    Tuple {
        kind: ItemKind::Result,
        seq: 6,
        turn: Some(id("trn", 1)),
        call: Some(id("call", 1)),
        tool: Some("read_file".to_owned()),
        hop: 5,
        labels: vec![Label::External],
        scope: String::new(),
        ..message_tuple()
    }
}

/// Returns the sealed bytes. They are canonical and never read, so only the bytes are compared.
fn tuple(name: &str, sample: &Tuple) -> Shape {
    let bytes = seal::tuple(sample);
    let again = |file: &[u8]| {
        let limits = ironclaw_contract::canonical::Limits::bytes(4096);
        let value = ironclaw_contract::canonical::parse(file, limits).map_err(|error| error.to_string())?;
        if value.as_array().is_none_or(|elements| elements.len() != 15) {
            return Err("is no array of fifteen elements".to_owned());
        }
        if ironclaw_contract::canonical::to_vec(&value) == file { Ok(()) } else { Err("is not canonical".to_owned()) }
    };
    Shape { of: "Tuple".to_owned(), read_back: Box::new(again), ..rewritten::<serde_json::Value>(name, bytes) }
}

#[test]
fn tuple_that_differs_in_one_field_has_other_bytes() {
    let whole = result_tuple();
    let others: Vec<Tuple> = vec![
        Tuple { session: id("ses", 2), ..whole.clone() },
        Tuple { item: id("itm", 2), ..whole.clone() },
        Tuple { kind: ItemKind::Notice, ..whole.clone() },
        Tuple { seq: 8, ..whole.clone() },
        Tuple { issued_at: AT + 1, ..whole.clone() },
        Tuple { boot: id("boot", 2), ..whole.clone() },
        Tuple { turn: None, ..whole.clone() },
        Tuple { call: None, ..whole.clone() },
        Tuple { tool: None, ..whole.clone() },
        Tuple { hop: 4, ..whole.clone() },
        Tuple { authors: "[]".to_owned(), ..whole.clone() },
        Tuple { labels: vec![], ..whole.clone() },
        Tuple { labels: vec![Label::External, Label::LlmDerived], ..whole.clone() },
        Tuple { scope: "declared:send".to_owned(), ..whole.clone() },
        Tuple { digest: digest(0xd2), ..whole.clone() },
    ];
    let mut seen = std::collections::BTreeSet::from([seal::tuple(&whole)]);
    for other in others {
        assert!(seen.insert(seal::tuple(&other)), "{other:?}");
    }
}

fn outbound() -> Vec<Shape> {
    let mut shapes = every!(Content {
        "content.reply": Content::Reply(_) => Content::Reply(id("itm", 1));
        "content.call": Content::Call(_) => Content::Call(id("call", 1));
        "content.end.tool_calls": Content::End(EndReason::ToolCalls) => Content::End(EndReason::ToolCalls);
        "content.end.model_calls": Content::End(EndReason::ModelCalls) => Content::End(EndReason::ModelCalls);
        "content.end.bytes": Content::End(EndReason::Bytes) => Content::End(EndReason::Bytes);
        "content.end.time": Content::End(EndReason::Time) => Content::End(EndReason::Time);
        "content.end.model": Content::End(EndReason::Model) => Content::End(EndReason::Model);
        "content.end.empty": Content::End(EndReason::Empty) => Content::End(EndReason::Empty);
        "content.end.failed": Content::End(EndReason::Failed) => Content::End(EndReason::Failed);
    });
    shapes.push(shape("end_reason", EndReason::Time));
    let row = RawRow {
        seq: 5,
        turn: "trn_01kagq8t000000000000000001".to_owned(),
        content: r#"{"reply":"itm_01kagq8t000000000000000001"}"#.to_owned(),
    };
    let row_digest = row.digest();
    shapes.push(shape("raw_row", row));
    shapes.push(shape("raw_row.digest", row_digest));
    let message = "msg_01kagq8t000000000000000001".to_owned();
    shapes.push(shape("progress", Progress { message, status: "processing".to_owned(), at: AT }));
    shapes
}

/// Makes the shape of the payload of a change, which has its own strict reader instead of a derive.
fn change(name: &str, kind: ChangeKind, payload: &str) -> Shape {
    let read = move |text: &[u8]| {
        let payload: Payload = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        Change::parse(kind, &payload).map_err(|error| error.to_string())
    };
    let sample = read(payload.as_bytes()).expect("of its kind");
    let bytes = ironclaw_contract::canonical::to_vec(&sample.payload());
    let read_back = move |file: &[u8]| match read(file)? {
        found if found == sample => Ok(()),
        found => Err(format!("reads back as {found:?}, which is not {sample:?}")),
    };
    Shape {
        name: name.to_owned(),
        of: "Change".to_owned(),
        bytes,
        read_back: Box::new(read_back),
        takes: Box::new(move |text| read(text).is_ok()),
    }
}

fn changes() -> Vec<Shape> {
    let of_kind = |kind: ChangeKind| {
        let payload = match kind {
            ChangeKind::Persona => r#"{"instructions":"Answer briefly."}"#,
            ChangeKind::EnabledTools => r#"["read_file","search_files"]"#,
            ChangeKind::Packages => r#"{"apt":["ripgrep"],"npm":["prettier"]}"#,
            ChangeKind::Wiring => r#"{"channel":"desk","engage":"pattern","pattern":"^!bot"}"#,
            ChangeKind::Permissions => {
                r#"{"access":"members","grant":[{"identity":"telegram:4711","role":"member"}],"revoke":["telegram:4712"]}"#
            }
            ChangeKind::Mounts => r#"[{"read_only":true,"source":"/srv/papers","target":"/papers"}]"#,
            ChangeKind::CreateAgent => {
                r#"{"enabled_tools":["read_file"],"members":["telegram:4711"],"name":"researcher","persona":{"instructions":"Find sources."},"wirings":[{"channel":"desk","engage":"all"}]}"#
            }
            ChangeKind::McpAccess => r#"{"server":"calendar","tools":["list_events"]}"#,
            ChangeKind::McpRegister => {
                r#"{"headers":[{"name":"Authorization","scheme":"Bearer","secret":"calendar"}],"name":"calendar","tools":[{"description":"What is on","name":"list_events"}],"url":"https://calendar.example"}"#
            }
            ChangeKind::Egress => {
                r#"{"host":"api.example","methods":["GET","POST"],"paths":["/repos/{owner}/issues"],"secret":"example","upload_bytes_max":65536}"#
            }
            ChangeKind::Destinations => r#"{"address":"4711","channel":"telegram","name":"ana"}"#,
            ChangeKind::McpConfirm
            | ChangeKind::Settings
            | ChangeKind::Schedule
            | ChangeKind::Groups
            | ChangeKind::Skills => {
                unreachable!("no agent may ask for it: see `of_people`")
            }
        };
        change(&format!("change.{kind}"), kind, payload)
    };
    let rules = r#"{"channel":"desk","engage":"mention_sticky","from":"all","ignored":"drop","sharing":"shared","unknown":"public"}"#;
    let rules = change("change.wiring.rules", ChangeKind::Wiring, rules);
    let difference = r#"{"add":["run_command"],"remove":["write_file"]}"#;
    let difference = change("change.enabled_tools.difference", ChangeKind::EnabledTools, difference);
    ChangeKind::for_agents()
        .map(of_kind)
        .chain([difference, rules])
        .chain(of_people())
        .chain(skills::changes())
        .collect()
}

/// Returns the payloads of the kinds that only people propose, and the other forms of `mcp_register`.
fn of_people() -> Vec<Shape> {
    let of_agent = Settings {
        mode: Some(GuardMode::DangerousWarn),
        model: Some("local".to_owned()),
        tokens_per_day: Some(200_000),
        cost_per_day_micros: Some(0),
        receiver: BTreeMap::from([(
            "guest".to_owned(),
            AskedClasses {
                may: Some(vec!["read".to_owned(), "ask".to_owned()]),
                unasked: Some(vec!["read".to_owned()]),
            },
        )]),
        ..Settings::default()
    };
    vec![
        shape("settings.agent", of_agent),
        shape("settings.asked_classes", AskedClasses { may: Some(Vec::new()), unasked: None }),
        shape(
            "groups",
            Group {
                name: "research".to_owned(),
                agents: vec!["clerk".to_owned(), "reader".to_owned()],
                tools: vec!["read_file".to_owned()],
                remove: None,
            },
        ),
        shape("settings.remove", Settings { remove: true, ..Settings::default() }),
        shape(
            "mcp_register.command",
            McpRegister {
                name: "files".to_owned(),
                command: vec!["files-server".to_owned(), "--stdio".to_owned()],
                packages: Packages { npm: vec!["files-server@1.2.3".to_owned()], ..Packages::default() },
                environment: vec![McpVariable {
                    variable: "API_KEY".to_owned(),
                    secret: Some("files".to_owned()),
                    text: None,
                }],
                mounts: vec![Mount {
                    source: "/srv/papers".to_owned(),
                    target: None,
                    read_only: Some(true),
                    mine: None,
                }],
                ..McpRegister::default()
            },
        ),
        shape("mcp_register.host", McpHost { host: "forge.example".to_owned(), ..McpHost::default() }),
        shape(
            "mcp_register.variable",
            McpVariable { variable: "LEVEL".to_owned(), text: Some("debug".to_owned()), ..McpVariable::default() },
        ),
        shape(
            "mcp_register.oauth",
            McpRegister {
                name: "calendar".to_owned(),
                url: Some("https://calendar.example/mcp".to_owned()),
                oauth: Some(Box::new(McpOauth {
                    issuer: "https://login.example".to_owned(),
                    scopes: vec!["events".to_owned()],
                    client_id: Some("ironclaw".to_owned()),
                    client_secret: Some("ironclaw-client".to_owned()),
                })),
                ..McpRegister::default()
            },
        ),
        shape(
            "mcp_register.hosts",
            McpRegister {
                name: "forge".to_owned(),
                command: vec!["forge-server".to_owned()],
                hosts: vec![McpHost {
                    host: "forge.example".to_owned(),
                    port: Some(8443),
                    upload_bytes_max: Some(100_000),
                }],
                ..McpRegister::default()
            },
        ),
        shape("mcp_register.remove", McpRegister { name: "files".to_owned(), remove: true, ..McpRegister::default() }),
        shape(
            "mcp_confirm",
            McpConfirm {
                server: "files".to_owned(),
                digest: Digest::of(b"listing"),
                manifest: Some("[[tool]]\nname = \"read\"\n".to_owned()),
            },
        ),
        shape("settings.default_model", Settings { default_model: Some("local".to_owned()), ..Settings::default() }),
    ]
}

#[test]
fn a_frame_is_its_length_and_its_golden_bytes() {
    let frame = socket::frame(&Request::Items { after_seq: 0 }).expect("fits");
    assert_eq!(frame, b"\x00\x00\x00\x1d{\"ask\":\"items\",\"after_seq\":0}");
    assert_eq!(ironclaw_contract::seam::link::BELL, 0x21);
}
