//! Tests of the kinds of principal: the table of `docs/operate/tools.md`, compared with the pure judgement and with a running host.
//!
//! The host is in the build with fail points, which can record the messages of an identity as those of another principal than a person:
//! `chats/authority.rs`, `agents.rs` and `schedules.rs` have the real ones. No
//! agent of this version has a tool of the class `trade`, or an outward one of `write` or `exec`; the pure judgement covers those.

use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost, programs, wait_for};
use crate::support::record::Needle;
use crate::support::site::{Site, grant};
use ironclaw_judge::call::{Answer, CallContext, Granted, Mode, Verdict, judge};
use ironclaw_judge::egress::Loopback;
use ironclaw_judge::inputs::Inputs;
use ironclaw_judge::manifest::{self, Manifest, Reach};
use ironclaw_judge::provenance::Labels;
use ironclaw_judge::{Class, Principal, ReceiverPolicy};
use serde_json::{Value, json};

/// The variable of the stub, which a release does not know.
const STUB: &str = "IRONCLAW_STUB_PRINCIPALS";

/// What a request declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Declares {
    Nothing,
    /// The class of the call.
    Class,
    /// Reading alone.
    Reading,
}

impl Declares {
    /// Returns the words of the table.
    const fn words(self) -> &'static str {
        match self {
            Self::Nothing => "declares nothing",
            Self::Class => "declares the class",
            Self::Reading => "declares `read`",
        }
    }

    /// Returns the class that a request declares for a call of a class.
    const fn class(self, class: Class) -> Option<Class> {
        match self {
            Self::Nothing => None,
            Self::Class => Some(class),
            Self::Reading => Some(Class::Read),
        }
    }
}

/// A row of the table.
struct Row {
    principal: Principal,
    is_contained: bool,
    declares: Declares,
    /// The cells by class; a class without a tool has none.
    cells: Vec<(Class, String)>,
}

impl Row {
    /// Returns the recorded scope of a request for a class.
    fn scope(&self, class: Class) -> String {
        self.declares.class(class).map_or_else(|| "default:".to_owned(), |class| format!("declared:{class}"))
    }
}

/// Reads the table of the manual.
fn table() -> Vec<Row> {
    let text = include_str!("../../../docs/operate/tools.md");
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect()
    };
    let mut lines = text.lines().skip_while(|line| !line.starts_with("| principal |"));
    let classes: Vec<String> = cells(lines.next().expect("a table"))[2..].to_vec();
    assert_eq!(classes, Class::ALL.map(|class| class.name().to_owned()));
    let rows = lines.skip(1).take_while(|line| line.starts_with('|')).map(|line| {
        let cells = cells(line);
        let (principal, rest) = cells[0].split_once(", ").unwrap_or((&cells[0], ""));
        Row {
            principal: principal.parse().expect("a kind of principal"),
            is_contained: rest == "contained tool",
            declares: [Declares::Nothing, Declares::Class, Declares::Reading]
                .into_iter()
                .find(|declares| declares.words().replace('`', "") == cells[1])
                .expect("a declaration"),
            cells: Class::ALL.into_iter().zip(cells[2..].to_vec()).filter(|(_, cell)| cell != "–").collect(),
        }
    });
    let rows: Vec<Row> = rows.collect();
    for kind in Principal::ALL {
        for declares in [Declares::Nothing, Declares::Class] {
            let is_row = |row: &&Row| row.principal == kind && row.declares == declares && !row.is_contained;
            assert_eq!(rows.iter().filter(is_row).count(), 1, "{} {declares:?}", kind.name());
        }
    }
    for declares in [Declares::Nothing, Declares::Class, Declares::Reading] {
        assert!(rows.iter().any(|row| row.is_contained && row.declares == declares), "{declares:?}");
    }
    rows
}

/// Returns a manifest of this class with an effect in the jail, at the host, or outside.
fn manifest_of(class: Class, is_contained: bool) -> Manifest {
    let reach = match class {
        _ if is_contained => Reach::Contained,
        Class::Ask => Reach::Action,
        _ => Reach::Outside,
    };
    let text = "[[tool]]\nname = 't'\nclass = 'read'\nreach = 'contained'\neffect = 'lists {path}'\n[tool.arguments.path]\nrule = 'free'";
    let manifest = manifest::parse(text).expect("a manifest").remove("t").expect("its tool");
    Manifest { class, reach, ..manifest }
}

fn judged(row: &Row, class: Class) -> String {
    let (manifest, receiver) = (manifest_of(class, row.is_contained), ReceiverPolicy::default());
    let judged = judge(&CallContext {
        manifest: Some(&manifest),
        missing: None,
        arguments: json!({ "path": "." }).as_object(),
        has_room: true,
        principal: row.principal,
        receiver: &receiver,
        scope: receiver.allowed(row.principal).asked(&row.scope(class)),
        binds_contained: row.declares != Declares::Nothing,
        writes_granted: false,
        asks_always: false,
        labels: Labels::NONE,
        inputs: &Inputs::default(),
        has_notes_of_others: false,
        is_covered: false,
        is_typed: &|_| false,
        loopback: Loopback::Refused,
        granted: Some(Granted::As(class)),
        mode: Mode::Enforce,
    });
    assert!(judged.trace.iter().all(|(_, answer)| !matches!(answer, Answer::Lifted(_))));
    match judged.verdict {
        Verdict::Permitted(_) => "runs".to_owned(),
        Verdict::Denied(code) => format!("denied: {code}"),
        Verdict::NeedsPerson(reasons) => asks(&reasons.iter().map(|reason| reason.code.name()).collect::<Vec<_>>()),
    }
}

fn asks(codes: &[&str]) -> String {
    format!("asks: {}", codes.join(" "))
}

#[test]
fn judgement_of_each_principal_and_class_is_that_of_the_manual() {
    for row in table() {
        for (class, cell) in &row.cells {
            assert_eq!(judged(&row, *class), *cell, "{} {:?} {class}", row.principal.name(), row.declares);
        }
    }
}

/// Returns words that make the scripted model call a tool of a class, if an agent can have one.
fn words(row: &Row, class: Class, site: &Site) -> Option<String> {
    let is_outward = row.principal == Principal::Person && !row.is_contained;
    match class {
        Class::Read if is_outward => Some(format!("fetch {}", site.url("/notes"))),
        Class::Write | Class::Exec if is_outward => None,
        Class::Read => Some("list".to_owned()),
        Class::Write => Some("write plan.txt: tulips".to_owned()),
        Class::Send => Some(format!("post tulips at {}", site.url("/notes"))),
        Class::Exec => Some("run true".to_owned()),
        Class::Trade => None,
        Class::Ask => Some("change persona to: be brief".to_owned()),
    }
}

fn identity(kind: Principal) -> String {
    format!("loopback:stub-{}", kind.name())
}

/// Sends a message as a principal and returns the answer to its call, as a cell of the table.
fn answer(raw: &Raw, row: &Row, class: Class, words: &str) -> String {
    let kind = row.principal;
    let thread = format!("{}-{}", row.is_contained, row.declares as u8);
    let mut body = json!({ "text": words, "thread": thread });
    if kind != Principal::Person {
        body["as"] = json!(identity(kind));
    }
    if let Some(declared) = row.declares.class(class).filter(|class| *class != Class::Ask) {
        body["allow"] = json!([declared.name()]);
    }
    let path = format!("/v1/messages/{}", raw.send_body("a", &body));
    let view = || raw.get(&format!("{path}?wait_ms=10000")).1;
    wait_for("an answer", || view()["status"] == "delivered");
    let view = view();
    let [call] = view["calls"].as_array().expect("calls").as_slice() else { panic!("{words}: {view}") };
    match call["status"].as_str() {
        Some("done") => "runs".to_owned(),
        Some("refused") => format!("denied: {}", call["code"].as_str().expect("a code")),
        Some("asked") => {
            let request = raw.get(&format!("/v1/waiting/{}", call["request"].as_str().expect("an id"))).1;
            let reasons = request["reasons"].as_array().expect("reasons");
            asks(&reasons.iter().filter_map(|reason| reason["reason"].as_str()).collect::<Vec<_>>())
        }
        _ => panic!("{words}: {view}"),
    }
}

/// Starts a host whose owner has an identity for each kind of principal.
fn stub_host(build: Build, site: &Site) -> TestHost {
    let mut host = TestHost::own(build);
    let stubs = Principal::ALL.map(|kind| format!("{}={}", identity(kind), kind.name()));
    host.set_env(STUB, Some(&stubs.join(" ")));
    grant(&host, site, &["GET", "POST"], &["/notes"]);
    host.change("a", "enabled_tools", &json!({ "add": ["run_command"] }));
    for kind in Principal::ALL {
        host.ctl(&["person", "link", "owner", &identity(kind), "--yes"]).ok();
    }
    host
}

/// Compares the answers of a host with the cells of a row, one after the other in one conversation.
fn check_row(raw: &Raw, row: &Row, site: &Site) {
    let mut cells: Vec<&(Class, String)> = row.cells.iter().collect();
    // The call that sends comes first, because the results of the others are text of others.
    cells.sort_by_key(|(class, _)| *class != Class::Send);
    for (class, cell) in cells {
        let Some(words) = words(row, *class, site) else { continue };
        assert_eq!(answer(raw, row, *class, &words), *cell, "{} {:?} {class}", row.principal.name(), row.declares);
    }
}

#[test]
fn host_answers_each_principal_and_class_as_the_manual_says() {
    let site = Site::start();
    let host = stub_host(Build::Failpoints, &site);
    let raw = Raw::of(&host);
    let rows = table();
    std::thread::scope(|scope| {
        for row in &rows {
            scope.spawn(|| check_row(&raw, row, &site));
        }
    });
    // The two requests that read, and the one that a person declared.
    let mut lines = site.lines();
    lines.sort();
    assert_eq!(lines, ["GET /notes HTTP/1.1", "GET /notes HTTP/1.1", "POST /notes HTTP/1.1"]);
    let refused = host.entries("call.refused");
    let cells = rows.iter().flat_map(|row| row.cells.iter().filter(|(class, _)| words(row, *class, &site).is_some()));
    let denied = cells.filter(|(_, cell)| cell.starts_with("denied")).count();
    let by_principal =
        |entry: &&Value| entry["data"]["reason"] == "call_principal" || entry["data"]["reason"] == "call_schedule";
    assert_eq!(refused.iter().filter(by_principal).count(), denied);
    let kinds = |event: &str| -> Vec<Value> {
        let mut kinds: Vec<_> =
            host.entries(event).iter().map(|entry| entry["data"]["principal_kind"].clone()).collect();
        kinds.sort_by_key(ToString::to_string);
        kinds
    };
    assert_eq!(kinds("turn.opened"), kinds("message.recorded"));
    for kind in Principal::ALL {
        assert!(kinds("turn.opened").contains(&json!(kind.name())), "{}", kind.name());
    }
    let inbox = raw.get("/v1/waiting").1["entries"].clone();
    let calls = inbox.as_array().expect("a list").iter().filter(|one| one["type"] == "call");
    let mut effects: Vec<&str> = calls.filter_map(|one| one["effect"].as_str()).collect();
    effects.sort_unstable();
    let tools = ["http_fetch (class send)", "run_command (class exec)", "write_file (class write)"];
    let are_all = effects.iter().zip(tools).all(|(effect, tool)| effect.contains(tool));
    assert!(effects.len() == tools.len() && are_all, "{inbox}");
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn release_has_no_stub_of_a_principal() {
    let site = Site::start();
    let host = stub_host(Build::Plain, &site);
    let raw = Raw::of(&host);
    let body = json!({ "text": "write plan.txt: tulips", "as": identity(Principal::Guest) });
    let path = format!("/v1/messages/{}", raw.send_body("a", &body));
    wait_for("an answer", || raw.get(&path).1["status"] == "delivered");
    assert_eq!(raw.get(&path).1["calls"][0]["status"], "done", "it is a message of its person");
    for event in ["message.recorded", "turn.opened"] {
        assert!(host.entries(event).iter().all(|entry| entry["data"]["principal_kind"] == "person"), "{event}");
    }
    // The name of a test's variable is in the program of tests alone.
    let program = |build| std::fs::read(programs(build).join("ironclaw-host")).expect("read");
    let (plain, of_tests) = (program(Build::Plain), program(Build::Failpoints));
    for name in
        [STUB, "IRONCLAW_FAILPOINT", "IRONCLAW_STOP_FILE", "IRONCLAW_CLOCK_SHIFT_FILE", "IRONCLAW_STATEMENTS_FILE"]
    {
        let has = |program: &[u8]| Needle::new(name, name).is_in(program);
        assert_eq!((has(&plain), has(&of_tests)), (false, true), "{name}");
    }
}
