//! Each stage with a call that it stops, and each mode with each outcome.

use super::*;
use crate::manifest;
use crate::provenance::{Labels, Provenance};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::LazyLock;

fn manifests() -> &'static BTreeMap<String, Manifest> {
    static ALL: LazyLock<BTreeMap<String, Manifest>> =
        LazyLock::new(|| manifest::parse(include_str!("tests/tools.toml")).expect("manifests"));
    &ALL
}

/// The parts of a context that tests change.
struct Case {
    tool: &'static str,
    arguments: Value,
    is_enabled: bool,
    has_room: bool,
    principal: Principal,
    scope: Classes,
    binds_contained: bool,
    writes_granted: bool,
    asks_always: bool,
    has_external: bool,
    is_covered: bool,
    typed: Vec<&'static str>,
    granted: Option<Granted>,
    mode: Mode,
    class: Option<Class>,
}

impl Case {
    fn new(tool: &'static str, arguments: Value) -> Self {
        Self {
            tool,
            arguments,
            is_enabled: true,
            has_room: true,
            principal: Principal::Person,
            scope: ReceiverPolicy::default().person.unasked,
            binds_contained: false,
            writes_granted: false,
            asks_always: false,
            has_external: false,
            is_covered: false,
            typed: Vec::new(),
            granted: None,
            mode: Mode::Enforce,
            class: None,
        }
    }

    fn sending() -> Self {
        let scope = Classes::new(&[Class::Send]);
        Self { scope, ..Self::new("send_message", json!({ "to": "ana", "text": "hello" })) }
    }

    fn fetching(granted: Granted) -> Self {
        let arguments = json!({ "method": "GET", "url": "https://a.example/" });
        Self { granted: Some(granted), ..Self::new("http_fetch", arguments) }
    }

    fn judged(&self) -> Judgement {
        let built_in = manifests().get(self.tool);
        let other = self.class.zip(built_in).map(|(class, built_in)| Manifest { class, ..built_in.clone() });
        judge(&CallContext {
            manifest: other.as_ref().or(built_in),
            missing: (!self.is_enabled).then_some(DenialCode::CallToolNotEnabled),
            arguments: self.arguments.as_object(),
            has_room: self.has_room,
            principal: self.principal,
            receiver: &ReceiverPolicy::default(),
            scope: self.scope,
            binds_contained: self.binds_contained,
            writes_granted: self.writes_granted,
            asks_always: self.asks_always,
            labels: Labels::from_provenance(if self.has_external { Provenance::Others } else { Provenance::Person }),
            inputs: &Inputs::default(),
            has_notes_of_others: false,
            is_covered: self.is_covered,
            is_typed: &|text| self.typed.contains(&text),
            loopback: Loopback::Refused,
            granted: self.granted,
            mode: self.mode,
        })
    }

    fn denied(&self) -> DenialCode {
        match self.judged().verdict {
            Verdict::Denied(code) => code,
            other => panic!("{} is not denied: {other:?}", self.tool),
        }
    }

    fn reasons(&self) -> Vec<DenialCode> {
        match self.judged().verdict {
            Verdict::NeedsPerson(reasons) => reasons.iter().map(|reason| reason.code).collect(),
            other => panic!("{} needs no person: {other:?}", self.tool),
        }
    }

    fn permitted(&self) -> Class {
        match self.judged().verdict {
            Verdict::Permitted(permit) => permit.class(),
            other => panic!("{} is not permitted: {other:?}", self.tool),
        }
    }
}

#[test]
fn each_denying_stage_names_its_code() {
    let read = || Case::new("read_file", json!({ "path": "a" }));
    assert_eq!(Case::new("rm", json!({})).denied(), DenialCode::CallToolUnknown);
    assert_eq!(Case::new("read_file", json!([])).denied(), DenialCode::CallMalformed);
    assert_eq!(Case::new("read_file", json!({ "pathname": "a" })).denied(), DenialCode::CallUnclassified);
    assert_eq!(Case { is_enabled: false, ..read() }.denied(), DenialCode::CallToolNotEnabled);
    assert_eq!(Case { has_room: false, ..read() }.denied(), DenialCode::CallNoRoom);
    for principal in [Principal::Guest, Principal::Unsigned] {
        assert_eq!(Case { principal, ..read() }.denied(), DenialCode::CallPrincipal, "{}", principal.name());
    }
    let request = Case::new("http_fetch", json!({ "url": "https://a.example/" }));
    assert_eq!(request.denied(), DenialCode::CallUnclassified, "the grants were not asked");
}

#[test]
fn schedule_may_read_and_agent_may_nothing_without_a_list() {
    let of = |principal, tool, arguments| Case { principal, ..Case::new(tool, arguments) };
    let read = |principal| of(principal, "read_file", json!({ "path": "a" }));
    assert_eq!(read(Principal::Schedule).permitted(), Class::Read);
    assert_eq!(read(Principal::Agent).denied(), DenialCode::CallPrincipal);
    for (principal, code) in
        [(Principal::Agent, DenialCode::CallPrincipal), (Principal::Schedule, DenialCode::CallSchedule)]
    {
        assert_eq!(of(principal, "write_file", json!({ "path": "a" })).denied(), code);
        assert_eq!(of(principal, "run_command", json!({ "command": "true" })).denied(), code);
        let sending = Case { principal, ..Case::sending() };
        assert_eq!(sending.denied(), code, "a declared scope does not widen it");
    }
}

#[test]
fn contained_call_of_a_person_asks_for_no_word() {
    for (tool, arguments, class) in contained() {
        let case = Case { has_external: true, scope: Classes::NONE, ..Case::new(tool, arguments) };
        assert_eq!(case.permitted(), class, "{tool}");
    }
}

/// Returns a call of each contained tool and of an action, with its class.
fn contained() -> [(&'static str, Value, Class); 5] {
    [
        ("read_file", json!({ "path": "a" }), Class::Read),
        ("write_file", json!({ "path": "a", "content": "x" }), Class::Write),
        ("run_command", json!({ "command": "rm -r ." }), Class::Exec),
        ("remember", json!({ "text": "x" }), Class::Write),
        ("request_capability_change", json!({ "kind": "persona" }), Class::Ask),
    ]
}

#[test]
fn declared_scope_binds_contained_calls_too() {
    let reading = Classes::new(&[Class::Read, Class::Ask]);
    for (tool, arguments, class) in contained() {
        let case = |scope| Case { binds_contained: true, scope, ..Case::new(tool, arguments.clone()) };
        assert_eq!(case(reading.with(class)).permitted(), class, "{tool}");
        match class {
            Class::Read | Class::Ask => assert_eq!(case(reading).permitted(), class, "{tool}"),
            _ => assert_eq!(case(reading).reasons(), [DenialCode::CallScope], "{tool}"),
        }
        let external = Case { has_external: true, ..case(reading.with(class)) };
        assert_eq!(external.permitted(), class, "{tool}: its inputs stay in the jail");
    }
}

#[test]
fn call_that_writes_into_a_granted_directory_counts_as_write() {
    for (tool, arguments) in [
        ("write_file", json!({ "path": "/data/a", "content": "x" })),
        ("run_command", json!({ "command": "rm /data/a" })),
    ] {
        let case = |scope: &[Class]| Case {
            writes_granted: true,
            has_external: true,
            scope: Classes::new(scope),
            ..Case::new(tool, arguments.clone())
        };
        assert_eq!(case(&[Class::Read, Class::Send]).reasons(), [DenialCode::CallScope], "{tool}");
        case(&[Class::Write]).permitted();
    }
    let declared = Case {
        scope: Classes::new(&[Class::Exec]),
        writes_granted: true,
        binds_contained: true,
        ..Case::new("run_command", json!({ "command": "true" }))
    };
    assert_eq!(declared.permitted(), Class::Exec);
}

#[test]
fn tool_that_always_asks_needs_the_policy_in_every_mode() {
    for (tool, arguments, _) in contained() {
        for mode in [Mode::Enforce, Mode::DangerousWarn, Mode::DangerousOff] {
            let case = Case { asks_always: true, mode, ..Case::new(tool, arguments.clone()) };
            let Verdict::NeedsPerson(reasons) = case.judged().verdict else { panic!("{tool} {mode:?}") };
            assert_eq!(reasons.len(), 1, "{tool}");
            assert_eq!(
                (reasons[0].code, reasons[0].decider()),
                (DenialCode::CallAlwaysAsks, Decider::Policy),
                "{tool}"
            );
        }
    }
}

#[test]
fn call_out_of_scope_needs_its_person() {
    let case = Case { scope: Classes::new(&[Class::Read, Class::Write]), ..Case::sending() };
    assert_eq!(case.reasons(), [DenialCode::CallScope]);
    assert_eq!(Case::sending().permitted(), Class::Send);
}

#[test]
fn text_of_others_makes_a_sending_call_need_a_person() {
    let case = Case { has_external: true, typed: vec!["ana"], ..Case::sending() };
    let Verdict::NeedsPerson(reasons) = case.judged().verdict else { panic!("it needs a person") };
    let found: Vec<_> = reasons.iter().map(|reason| (reason.code, reason.arguments.join(" "))).collect();
    assert_eq!(found, [(DenialCode::CallOrigin, String::new()), (DenialCode::CallOutward, "text".to_owned())]);
    assert!(reasons.iter().all(|reason| reason.decider() == Decider::Principal));
}

#[test]
fn flow_covers_the_origin_of_a_call_and_nothing_else() {
    let covered = Case { has_external: true, is_covered: true, ..Case::sending() };
    assert_eq!(covered.permitted(), Class::Send);
    let trace = covered.judged().trace;
    for (stage, code) in [(Stage::Inputs, DenialCode::CallOrigin), (Stage::Outward, DenialCode::CallOutward)] {
        assert!(trace.contains(&(stage, Answer::Covered(code))), "{}", stage.name());
    }
    assert_eq!(covered.judged().would_have_blocked().count(), 0, "it is approved, and no mode lifted it");
    let covered = |case: Case| Case { has_external: true, is_covered: true, ..case };
    assert_eq!(covered(Case { scope: Classes::NONE, ..Case::sending() }).reasons(), [DenialCode::CallScope]);
    let schedule = Case { principal: Principal::Schedule, ..Case::sending() };
    assert_eq!(covered(schedule).denied(), DenialCode::CallSchedule);
    let ungranted = Case::fetching(Granted::Missing(DenialCode::EgressNewHost));
    assert!(covered(ungranted).reasons().contains(&DenialCode::EgressNewHost));
}

#[test]
fn all_reasons_are_in_one_request() {
    let case = Case { has_external: true, scope: Classes::NONE, ..Case::sending() };
    assert_eq!(case.reasons(), [DenialCode::CallScope, DenialCode::CallOrigin, DenialCode::CallOutward]);
}

#[test]
fn reading_over_the_network_never_asks_for_its_origin() {
    let case = Case { has_external: true, ..Case::fetching(Granted::As(Class::Read)) };
    assert_eq!(case.permitted(), Class::Read);
    let case = Case::fetching(Granted::As(Class::Send));
    assert_eq!(case.reasons(), [DenialCode::CallScope]);
}

#[test]
fn search_elsewhere_asks_for_words_that_were_not_typed() {
    let search = |typed: &[&'static str]| {
        let arguments = json!({ "to": "search", "text": "tulips" });
        Case { class: Some(Class::Read), typed: typed.to_vec(), ..Case::new("send_message", arguments) }
    };
    assert_eq!(search(&[]).permitted(), Class::Read);
    let after = |typed| Case { has_external: true, ..search(typed) };
    assert_eq!(after(&["search"]).reasons(), [DenialCode::CallOutward]);
    assert_eq!(after(&["search", "tulips"]).permitted(), Class::Read);
}

#[test]
fn text_of_others_asks_per_turn_only_without_rules() {
    let after_others = |tool, arguments| Case { has_external: true, ..Case::new(tool, arguments) };
    let note = || json!({ "note": "tulips" });
    // The rules say that text of others may choose the note, and that it stays at the server.
    assert_eq!(after_others("add_note", note()).permitted(), Class::Write);
    assert_eq!(after_others("share_note", note()).reasons(), [DenialCode::CallOutward]);
    let contact = json!({ "note": "Bob is eve@evil.example" });
    assert_eq!(after_others("add_note", contact.clone()).reasons(), [DenialCode::CallOrigin], "a later receiver");
    let typed = Case { typed: vec!["eve@evil.example"], ..after_others("add_note", contact) };
    assert_eq!(typed.permitted(), Class::Write);
    // Nothing says what text of others may choose, or a control field has a value that no person typed.
    assert_eq!(after_others("clear_notes", json!({})).reasons(), [DenialCode::CallOrigin]);
    let filed = json!({ "file": "a", "note": "tulips" });
    assert_eq!(after_others("file_note", filed).reasons(), [DenialCode::CallOrigin]);
    let sent =
        Case { class: Some(Class::Send), scope: Classes::new(&[Class::Send]), ..after_others("add_note", note()) };
    assert_eq!(sent.reasons(), [DenialCode::CallOrigin], "what sends always has a receiver");
}

#[test]
fn request_to_a_typed_address_sends_what_has_no_other_address() {
    let post = |typed: &[&'static str], body: &str| {
        let arguments = json!({ "method": "POST", "url": "https://a.example/notes", "body": body });
        let granted = Some(Granted::As(Class::Send));
        let scope = Classes::new(&[Class::Send]);
        Case { granted, scope, has_external: true, typed: typed.to_vec(), ..Case::new("http_fetch", arguments) }
    };
    let typed = ["https://a.example/notes"];
    assert_eq!(post(&typed, "The page says tulips.").permitted(), Class::Send);
    assert_eq!(post(&typed, "Pay at https://evil.example/pay").reasons(), [DenialCode::CallOutward]);
    for other in [&[][..], &["https://a.example/"], &["a.example"]] {
        assert_eq!(post(other, "tulips").reasons(), [DenialCode::CallOrigin, DenialCode::CallOutward], "{other:?}");
    }
    let remove = |typed: &[&'static str]| {
        let arguments = json!({ "method": "DELETE", "url": "https://a.example/notes" });
        Case { arguments, ..post(typed, "") }
    };
    assert_eq!(remove(&typed).reasons()[0], DenialCode::CallOrigin, "the person typed no DELETE");
    assert_eq!(remove(&["https://a.example/notes", "DELETE"]).permitted(), Class::Send);
    let run = Case { principal: Principal::Schedule, ..post(&typed, "tulips") };
    assert_eq!(run.denied(), DenialCode::CallSchedule, "the list of the schedule decides first");
    let missing = Case { granted: Some(Granted::Missing(DenialCode::EgressNewPath)), ..post(&typed, "tulips") };
    assert_eq!(missing.reasons(), [DenialCode::EgressNewPath]);
}

#[test]
fn plain_read_has_no_value_of_the_model_for_others() {
    let reads = |arguments| {
        let case = Case { typed: vec!["tulips"], class: Some(Class::Read), ..Case::new("share_note", arguments) };
        case.judged().is_plain_read
    };
    assert!(reads(json!({ "note": "tulips" })) && reads(json!({})));
    assert!(!reads(json!({ "note": "roses" })) && !reads(json!({ "note": { "tulips": "roses" } })));
    assert!(!Case::new("add_note", json!({ "note": "tulips" })).judged().is_plain_read, "it writes");
    let inside = Case { class: Some(Class::Read), ..Case::new("add_note", json!({ "note": "roses" })) };
    assert!(inside.judged().is_plain_read);
    let unruled = Case { class: Some(Class::Read), ..Case::new("add_note", json!({ "to": "roses" })) };
    assert!(!unruled.judged().is_plain_read);
}

#[test]
fn request_without_a_grant_needs_the_policy_in_every_mode() {
    for mode in [Mode::Enforce, Mode::DangerousWarn, Mode::DangerousOff] {
        let case = Case { mode, ..Case::fetching(Granted::Missing(DenialCode::NotFound)) };
        let Verdict::NeedsPerson(reasons) = case.judged().verdict else { panic!("{mode:?}") };
        let last = reasons.last().expect("a reason");
        assert_eq!((last.code, last.decider()), (DenialCode::NotFound, Decider::Policy), "{mode:?}");
    }
}

#[test]
fn modes_lift_scope_inputs_and_outward_alone() {
    let stopped = |mode| Case { mode, has_external: true, scope: Classes::NONE, ..Case::sending() };
    assert_eq!(stopped(Mode::Enforce).reasons().len(), 3);
    assert_eq!(stopped(Mode::DangerousWarn).permitted(), Class::Send);
    let judged = stopped(Mode::DangerousWarn).judged();
    let would: Vec<_> = judged.would_have_blocked().collect();
    assert_eq!(would, [DenialCode::CallScope, DenialCode::CallOrigin, DenialCode::CallOutward]);
    assert_eq!(stopped(Mode::DangerousOff).permitted(), Class::Send);
    assert_eq!(stopped(Mode::DangerousOff).judged().would_have_blocked().count(), 0, "nothing was judged");
    for mode in [Mode::DangerousWarn, Mode::DangerousOff] {
        assert_eq!(Case { is_enabled: false, mode, ..Case::sending() }.denied(), DenialCode::CallToolNotEnabled);
        assert_eq!(Case { principal: Principal::Agent, mode, ..Case::sending() }.denied(), DenialCode::CallPrincipal);
    }
}

/// Each mode with each outcome: permitted, denied, needs a person. A reason that modes lift becomes a permission.
#[test]
fn each_mode_has_each_outcome() {
    let out_of_scope = || Case { scope: Classes::NONE, ..Case::sending() };
    let ungranted = || Case { scope: Classes::NONE, ..Case::fetching(Granted::Missing(DenialCode::EgressNewHost)) };
    for (mode, scoped, lifted) in [
        (Mode::Enforce, "ask call_scope", &[][..]),
        (Mode::DangerousWarn, "permitted send", &[DenialCode::CallScope]),
        (Mode::DangerousOff, "permitted send", &[]),
    ] {
        let outcome = |case: Case| {
            let judged = Case { mode, ..case }.judged();
            let codes =
                |reasons: &[Reason]| reasons.iter().map(|reason| reason.code.name()).collect::<Vec<_>>().join(" ");
            let told = match &judged.verdict {
                Verdict::Permitted(permit) => format!("permitted {}", permit.class()),
                Verdict::Denied(code) => format!("denied {code}"),
                Verdict::NeedsPerson(reasons) => format!("ask {}", codes(reasons)),
            };
            (told, judged.would_have_blocked().collect::<Vec<_>>())
        };
        let is = |told: &str, lifted: &[DenialCode]| (told.to_owned(), lifted.to_vec());
        assert_eq!(outcome(Case::sending()), is("permitted send", &[]), "{mode:?}");
        assert_eq!(outcome(out_of_scope()), is(scoped, lifted), "{mode:?}");
        let disabled = Case { is_enabled: false, ..out_of_scope() };
        assert_eq!(outcome(disabled), is("denied call_tool_not_enabled", &[]), "{mode:?}");
        // No mode lifts a missing grant. In mode `enforce` the scope is a reason as well.
        let asked = if mode == Mode::Enforce { "ask call_scope egress_new_host" } else { "ask egress_new_host" };
        assert_eq!(outcome(ungranted()), is(asked, lifted), "{mode:?}");
    }
}

#[test]
fn trace_has_each_stage_up_to_the_one_that_denied() {
    let whole: Vec<_> = Case::sending().judged().trace.into_iter().map(|(stage, _)| stage).collect();
    assert_eq!(whole, Stage::ALL);
    let cut = Case { is_enabled: false, ..Case::sending() }.judged().trace;
    assert_eq!(cut.last(), Some(&(Stage::Granted, Answer::Deny(DenialCode::CallToolNotEnabled))));
    assert_eq!(cut.len(), 3);
}

proptest! {
    /// A context with text of others, a smaller scope or fewer typed values never permits more.
    #[test]
    fn less_trust_never_permits_more(
        tool in proptest::sample::select(vec!["read_file", "run_command", "send_message", "http_fetch"]),
        scope in proptest::sample::subsequence(Class::ALL.to_vec(), 0..=6),
        (has_external, is_typed) in (any::<bool>(), any::<bool>()),
    ) {
        let arguments = match tool {
            "read_file" => json!({ "path": "a" }),
            "run_command" => json!({ "command": "true" }),
            "http_fetch" => json!({ "method": "POST", "url": "https://a.example/" }),
            _ => json!({ "to": "ana", "text": "hello" }),
        };
        let granted = (tool == "http_fetch").then_some(Granted::As(Class::Send));
        let typed = if is_typed { vec!["ana", "hello", "POST", "https://a.example/"] } else { Vec::new() };
        let of = |scope: Classes, has_external, typed: &[&'static str]| {
            Case { scope, has_external, typed: typed.to_vec(), granted, ..Case::new(tool, arguments.clone()) }.judged()
        };
        let scope: Classes = scope.into_iter().collect();
        let with = of(scope, has_external, &typed);
        for less in [of(Classes::NONE, has_external, &typed), of(scope, true, &typed), of(scope, has_external, &[])] {
            let is_permitted = |judged: &Judgement| matches!(judged.verdict, Verdict::Permitted(_));
            prop_assert!(is_permitted(&with) || !is_permitted(&less));
        }
    }
}
