//! Tests of `ironctl report`: it counts what the host did, and each change that it names saves what it says.
//!
//! They use the real programs with the scripted model, a server on loopback, and a server of MCP. See `requests`.

use super::mcp::{self, ready, show};
use super::requests::{approve, host_with, inbox, post, reject, request, say, waiting};
use crate::support::client::Raw;
use crate::support::host_fixture::{TestHost, wait_for};
use crate::support::listed_mcp::{Listed, ListedServers};
use serde_json::{Value, json};

fn report(host: &TestHost) -> Value {
    host.ctl(&["--json", "report"]).ok().json()
}

/// Returns the count behind a word in a list of counts.
fn count(list: &Value, field: &str, word: &str) -> u64 {
    let found = list.as_array().expect("a list").iter().find(|one| one[field] == word);
    let counted = found.map(|one| ["calls", "requests", "count"].map(|name| one[name].as_u64()));
    counted.and_then(|counts| counts.into_iter().flatten().next()).unwrap_or(0)
}

/// Types a command of a report, with the words of it between quotes.
fn type_command(host: &TestHost, command: &str, more: &[&str]) {
    let words: Vec<&str> = command.split(' ').skip(1).map(|word| word.trim_matches('\'')).collect();
    host.ctl(&[&words, more].concat()).ok();
}

#[test]
fn empty_host_has_one_line_and_other_spans_are_refused() {
    let (_, host, raw) = host_with(&["POST"], &["/notes"]);
    assert_eq!(host.ctl(&["report"]).ok().stdout.lines().count(), 1);
    let empty = report(&host);
    assert_eq!((&empty["calls"]["total"], &empty["changes"], &empty["left_out"]), (&json!(0), &json!([]), &json!([])));
    for since in ["week", "2099-01-01T00:00:00Z", "0d", ""] {
        let (status, refused) = raw.get(&format!("/v1/report?since={since}"));
        assert_eq!((status, &refused["error"]["code"]), (400, &json!("since_malformed")), "{since}");
    }
}

#[test]
fn report_counts_requests_and_its_allowance_saves_the_next_one() {
    let (site, host, raw) = host_with(&["GET", "POST"], &["/notes"]);
    let url = site.url("/notes");
    for thread in ["one", "two", "three"] {
        let body = json!({ "text": format!("post tulips at {url}"), "thread": thread });
        let id = raw.send_body("a", &body);
        wait_for("an answer", || raw.get(&format!("/v1/messages/{id}")).1["status"] == "delivered");
    }
    let entry = request(&raw, &inbox(&raw)[0]["id"]);
    assert_eq!(approve(&raw, &entry).0, 200);
    wait_for("the outcome", || request(&raw, &entry["id"])["status"] == "done");
    say(&raw, &format!("fetch {url}"));
    say(&raw, "write a.txt: tulips");
    say(&raw, "use none__tool {}");
    let first = report(&host);
    let (calls, requests) = (&first["calls"], &first["requests"]);
    assert_eq!([&calls["total"], &calls["asked"], &calls["not_made"]], [6, 3, 0], "{first}");
    assert_eq!(["read", "write", "send"].map(|class| count(&calls["classes"], "class", class)), [1, 1, 3], "{calls}");
    assert_eq!(["contained", "read"].map(|rule| count(&calls["unasked"], "rule", rule)), [1, 1], "{calls}");
    assert_eq!(count(&calls["refused"], "code", "call_tool_unknown"), 1, "{calls}");
    assert_eq!([&requests["total"], &requests["tasks"], &requests["task_max"], &requests["decided"]], [3, 3, 1, 1]);
    assert_eq!(["done", "pending"].map(|status| count(&requests["statuses"], "status", status)), [1, 2], "{requests}");
    assert!(requests["median_ms"].is_u64() && requests["median_ms"] == requests["ninetieth_ms"], "{requests}");
    let change = &first["changes"][0];
    assert_eq!(
        [&change["change"], &change["person"], &change["saves"]],
        [&json!("allowance"), &json!("owner"), &json!(3)]
    );
    assert_eq!((first["changes"].as_array().map(Vec::len), &first["left_out"]), (Some(1), &json!([])), "{first}");
    let examples = change["examples"].as_array().expect("a list");
    assert!(examples.len() == 3 && examples.iter().any(|example| example["request"] == entry["id"]), "{change}");
    assert!(examples[0]["effect"].as_str().expect("words").contains(&url), "{change}");
    type_command(&host, change["command"].as_str().expect("a command"), &["--yes"]);
    let body = json!({ "text": format!("post roses at {url}"), "thread": "four" });
    let id = raw.send_body("a", &body);
    wait_for("the call without a question", || site.sent("roses") == 1);
    wait_for("an answer", || raw.get(&format!("/v1/messages/{id}")).1["status"] == "delivered");
    let second = report(&host);
    assert_eq!(count(&second["calls"]["unasked"], "rule", "allowance"), 1, "{second}");
    assert_eq!((&second["requests"]["total"], &second["changes"]), (&json!(3), &json!([])), "{second}");
    assert_eq!(count(&second["left_out"], "part", "requests_settled"), 3, "{second}");
    let shown = host.ctl(&["report"]).ok().stdout;
    assert!(shown.lines().count() <= 25 && shown.contains("requests"), "{shown}");
}

#[test]
fn report_of_a_member_has_their_own_turns_alone() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    post(&raw, "tulips", &site.url("/notes"));
    let mara = Raw::add_person(&host, "mara", &[]);
    let own = mara.get("/v1/report").1;
    assert_eq!(
        (&own["person"], &own["calls"]["total"], &own["requests"]["total"]),
        (&json!("mara"), &json!(0), &json!(0))
    );
    for text in ["roses", "lilies"] {
        post(&mara, text, &site.url("/notes"));
    }
    let own = mara.get("/v1/report?since=1h").1;
    assert_eq!((&own["calls"]["total"], &own["requests"]["total"], &own["tasks"]), (&json!(2), &json!(2), &json!(2)));
    assert_eq!((&own["changes"][0]["person"], &own["changes"][0]["saves"]), (&json!("mara"), &json!(2)), "{own}");
    let all = report(&host);
    assert_eq!((&all["person"], &all["requests"]["total"]), (&Value::Null, &json!(3)), "{all}");
    // The allowance of one person saves no request of another one, and the word in the message saves all.
    assert_eq!((&all["changes"][0]["change"], &all["changes"][0]["saves"]), (&json!("message"), &json!(3)), "{all}");
}

#[test]
fn report_of_an_agent_has_its_turns_alone() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    let (status, refused) = raw.get("/v1/report?agent=none");
    assert_eq!((status, &refused["error"]["code"]), (404, &json!("agent_unknown")));
    host.agent("b");
    post(&raw, "tulips", &site.url("/notes"));
    let counted = |raw: &Raw, agent: &str| {
        let found = raw.get(&format!("/v1/report?agent={agent}")).1;
        assert_eq!(found["agent"], agent, "{found}");
        [&found["tasks"], &found["calls"]["total"], &found["requests"]["total"]]
            .map(|count| count.as_u64().expect("a count"))
    };
    assert_eq!((counted(&raw, "a"), counted(&raw, "b")), ([1, 1, 1], [0, 0, 0]));
    let mara = Raw::add_person(&host, "mara", &[]);
    assert_eq!(counted(&mara, "a"), [0, 0, 0], "a member sees their own turns alone");
    assert_eq!(host.ctl(&["report", "--agent", "b"]).ok().stdout.lines().count(), 1);
}

#[test]
fn change_for_a_rejected_call_or_one_that_runs_code_is_left_out() {
    let (site, host, raw) = host_with(&["POST"], &["/notes"]);
    for text in ["tulips", "roses"] {
        post(&raw, text, &site.url("/notes"));
    }
    post(&raw, "lilies", &site.url("/notes"));
    let rejected = inbox(&raw)[2]["id"].clone();
    assert_eq!(reject(&raw, &request(&raw, &rejected), "no").0, 200);
    host.ctl(&["agent", "set", "a", "--add-tool", "run_command", "--yes"]).ok();
    for text in ["run true", "run false"] {
        let id = raw.send_body("a", &json!({ "text": text, "allow": ["read"] }));
        wait_for("an answer", || raw.get(&format!("/v1/messages/{id}")).1["status"] == "delivered");
    }
    let found = report(&host);
    assert_eq!((&found["requests"]["total"], &found["changes"]), (&json!(5), &json!([])), "{found}");
    assert_eq!(count(&found["left_out"], "part", "requests_always_asked"), 2, "{found}");
    assert_eq!(count(&found["left_out"], "part", "changes_for_rejected_calls"), 2, "{found}");
}

#[test]
fn grant_of_a_report_lets_its_request_run() {
    let (site, host, raw) = host_with(&["GET"], &["/notes"]);
    let url = site.url("/page");
    // Only one request without a grant can wait.
    say(&raw, &format!("fetch {url}"));
    let entry = waiting(&raw);
    assert_eq!(approve(&raw, &entry).0, 200);
    wait_for("the outcome", || request(&raw, &entry["id"])["status"] == "done");
    let body = json!({ "text": format!("fetch {url}"), "thread": "two" });
    let id = raw.send_body("a", &body);
    wait_for("an answer", || raw.get(&format!("/v1/messages/{id}")).1["status"] == "delivered");
    let found = report(&host);
    let change = &found["changes"][0];
    assert_eq!((&change["change"], &change["saves"]), (&json!("grant"), &json!(2)), "{found}");
    type_command(&host, change["command"].as_str().expect("a command"), &["--yes"]);
    let body = json!({ "text": format!("fetch {url}"), "thread": "three" });
    raw.send_body("a", &body);
    wait_for("the call without a question", || site.lines().len() == 2);
    assert_eq!(inbox(&raw).len(), 1, "no further question");
    assert_eq!(count(&report(&host)["left_out"], "part", "requests_settled"), 2);
}

#[test]
fn looser_manifest_of_a_report_lets_its_call_run() {
    let host = mcp::host();
    let servers = ListedServers::start();
    let schema = json!({ "type": "object", "properties": { "query": { "type": "string" } } });
    let tool = json!({ "name": "search_notes", "description": "A tool.", "inputSchema": schema });
    let url = servers.list("notes", Listed::page(&[tool.to_string()]));
    ready(&host, "notes", &["--url", &url], None);
    let raw = Raw::of(&host);
    let use_it = |query: &str| say(&raw, &format!("use notes__search_notes {}", json!({ "query": query })));
    for query in ["tulips", "roses"] {
        use_it(query);
    }
    assert_eq!(inbox(&raw).len(), 2);
    let found = report(&host);
    let change = &found["changes"][0];
    assert_eq!((&change["change"], &change["saves"]), (&json!("manifest"), &json!(2)), "{found}");
    assert!(change["effect"].as_str().expect("words").contains("class read in place of send"), "{change}");
    let command = change["command"].as_str().expect("a command");
    type_command(&host, command, &["--yes"]);
    assert_eq!(show(&host, "notes")["tools"][0]["class"], "read");
    host.ctl(&["mcp", "grant", "a", "notes", "--yes"]);
    use_it("lilies");
    assert_eq!(inbox(&raw).len(), 2, "no further question");
}
