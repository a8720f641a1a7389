//! Values in each run of a schedule, also after a restart, and names that the host knows.

use super::*;
use crate::support::host_fixture::wait_for;

#[test]
fn each_run_of_a_schedule_takes_the_values_of_its_prompt() {
    let office = Office::new();
    let prompt = "mail the plan to bob@example.org";
    let add = ["--json", "schedule", "add", "a", prompt, "--every", "1d", "--may", "mail__sendMail", "--yes"];
    let added = office.host.ctl(&add).ok().json();
    let id = added["id"].as_str().or(added["schedule"]["id"].as_str()).unwrap_or_else(|| panic!("no id: {added}"));
    for run in 1..=3 {
        let send = json!({ "recipient": link("$email.1"), "body": format!("run {run}") });
        let evil = json!({ "recipient": "eve@evil.example", "body": format!("run {run}") });
        *office.calls.lock().expect("calls") =
            [evil, send].map(|arguments| ("mail__sendMail".to_owned(), arguments)).into();
        office.host.ctl(&["schedule", "run", id]).ok();
        // Its refused call makes each run a failed one.
        wait_for("the end of the run", || {
            let runs = office.host.ctl(&["--json", "schedule", "history", id]).ok().json();
            runs.as_array().is_some_and(|runs| runs.len() == run && runs.iter().all(|run| run["state"] == "failed"))
        });
        assert_eq!(office.host.entries("call.ran").len(), run);
        let refused = office.host.entries("call.refused");
        assert_eq!((refused.len(), &refused[run - 1]["data"]["reason"]), (run, &json!("call_input")), "{refused:?}");
        let recorded = office.host.entries("call.recorded");
        assert!(recorded[run - 1]["data"]["inputs"].as_str().is_some_and(|inputs| inputs.starts_with("recipient=m")));
        if run == 2 {
            office.host.restart();
        }
    }
}

#[test]
fn name_that_the_host_knows_is_a_value() {
    let office = Office::new();
    office.host.ctl(&["person", "add", "ben", "--role", "member"]).ok();
    let mail = json!({ "recipient": link("$name.1"), "body": "x" });
    let (calls, answer) = office.ask("a", "known", "/allow send -- write to ben", &[("sendMail", mail)]);
    assert!(calls[0]["status"] == "done" && answer.contains("\"recipient\":\"ben\""), "{answer}");
    // A part of a longer word is no name.
    let part = json!({ "recipient": link("m2.name.1"), "body": "x" });
    let (calls, _) = office.ask("a", "part", "/allow send -- write to benedict", &[("sendMail", part)]);
    assert_eq!(calls[0]["code"], "call_link_unknown");
}
