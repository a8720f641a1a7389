//! The time of the check of ten control fields against the values of 100 messages, which a conversation of 200 items has.

use super::figures::{Report, Samples};
use super::{TIMES, WARM_UP};
use ironclaw_contract::ids::ItemId;
use ironclaw_judge::egress::Loopback;
use ironclaw_judge::inputs::{Handles, Message, Task, Tool, bind};
use ironclaw_judge::manifest::server::Tools;
use ironclaw_judge::provenance::spans::TypedSpan;
use serde_json::{Map, Value, json};
use std::hint::black_box;
use std::time::Instant;

/// Messages of the task, each with three values.
const MESSAGES: u64 = 100;
/// Control fields of the call.
const FIELDS: u64 = 10;

fn typed(number: u64) -> String {
    format!("mail person{number}@example.org about order {number} by 2026-12-{:02}, please", number % 28 + 1)
}

fn handles() -> Handles {
    let mut all = Handles::new(Loopback::Refused);
    for number in 1..=MESSAGES {
        let text = typed(number);
        let spans = vec![TypedSpan::read(0, &text)];
        all.add(&Message { item: ItemId::new(), seq: 2 * number, spans, task: Task::This }, &[]);
    }
    all
}

/// Measures the check with references and with copies of values, and the search for the values of one message.
pub(super) fn measure(report: &mut Report) {
    let field = json!({ "type": "string", "ifc": { "requiredIntegrity": ["UserSurfaceInput"] } });
    let properties: Map<String, Value> = (0..FIELDS).map(|n| (format!("to{n}"), field.clone())).collect();
    let schema = json!({ "type": "object", "properties": properties });
    let hard = &Tools::strictest("mail", &[json!({ "name": "send", "inputSchema": schema })]).manifests["send"];
    let free = json!({ "type": "object", "properties": (0..FIELDS).map(|n| (format!("to{n}"), json!({}))).collect::<Map<_, _>>() });
    let asking = &Tools::strictest("mail", &[json!({ "name": "send", "inputSchema": free })]).manifests["send"];
    let handles = handles();
    let by_reference = |n: u64| json!({ "@link": format!("m{}.email.1", 2 * (n + 1)) });
    let copied = |n: u64| json!(format!("person{}@example.org", n + 1));
    let call = |value: &dyn Fn(u64) -> Value| -> Map<String, Value> {
        (0..FIELDS).map(|n| (format!("to{n}"), value(n))).collect()
    };
    for (key, what, manifest, parameters, arguments) in [
        ("inputs_hard", "ten hard floors, by reference", hard, &schema, call(&by_reference)),
        ("inputs_copied", "ten floors, copied values", asking, &free, call(&copied)),
    ] {
        let tool = Tool { server: "mail", name: "send", manifest, parameters, floored: &[] };
        let mut samples = Samples::default();
        for at in 0..WARM_UP + TIMES {
            let mut arguments = arguments.clone();
            let begun = Instant::now();
            let inputs = bind(black_box(&mut arguments), Some(tool), &[], black_box(&handles), &|_| false);
            let taken = begun.elapsed().as_secs_f64();
            assert_eq!(inputs.values.len(), FIELDS as usize);
            if at >= WARM_UP {
                samples.push(taken);
            }
        }
        report.microseconds(key, what, &samples);
    }
    let (text, mut found) = (typed(1), Samples::default());
    for at in 0..WARM_UP + TIMES {
        let begun = Instant::now();
        let mut all = Handles::new(Loopback::Refused);
        let spans = vec![TypedSpan::read(0, black_box(&text))];
        all.add(&Message { item: ItemId::new(), seq: 2, spans, task: Task::This }, &[]);
        black_box(all);
        if at >= WARM_UP {
            found.push(begun.elapsed().as_secs_f64());
        }
    }
    report.microseconds("inputs_found", "the values of one message", &found);
}
