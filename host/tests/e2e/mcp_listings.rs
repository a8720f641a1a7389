//! Tests of the listings of other people's MCP servers: one odd tool, page or name is one odd one, and the others are confirmed, granted
//! and called.
//!
//! They use the real programs, the scripted model, and the servers of `support::listed_mcp`.

use super::mcp::{add, call, host, ready, show};
use crate::support::host_fixture::TestHost;
use crate::support::listed_mcp::{Listed, ListedServers};
use crate::support::model_server::{Act, Seen, Server};
use serde_json::{Value, json};

/// Bytes of the longest description.
const DESCRIPTION_BYTES_MAX: usize = 8 << 10;

/// The end of the longest description.
const LAST_LINE: &str = "the last line of it";

/// A tool that agents can get, with arguments of a call.
struct Fit {
    entry: String,
    arguments: Value,
}

/// Returns the entry of a tool with this schema.
fn entry(name: &str, schema: Value) -> String {
    json!({"name": name, "inputSchema": schema}).to_string()
}

/// Returns the forms that the host takes.
fn fit() -> Vec<Fit> {
    let text = json!({"type": "string"});
    let one = json!({"a": "tulips"});
    let plain = || json!({"type": "object", "properties": {"a": text}});
    let with = |extra: Value| {
        let mut schema = plain();
        schema.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        schema
    };
    let branches = json!([{"properties": {"a": text}, "required": ["a"]}, {"properties": {"b": text}}]);
    let defined = json!({"$ref": "#/$defs/x", "$defs": {"x": plain()}});
    let long_words = "w".repeat(DESCRIPTION_BYTES_MAX - LAST_LINE.len() - 1) + "\n" + LAST_LINE;
    let fit = |entry: String, arguments: Value| Fit { entry, arguments };
    vec![
        fit(
            entry("any_of", with(json!({"anyOf": [{"required": ["a"]}, {"properties": {"b": text}}]}))),
            json!({"b": "x"}),
        ),
        fit(entry("one_of", json!({"oneOf": branches})), one.clone()),
        fit(entry("all_of", with(json!({"allOf": branches}))), json!({"a": "x", "b": "y"})),
        fit(
            entry("if_then", with(json!({"if": {"required": ["a"]}, "then": {"properties": {"b": text}}}))),
            one.clone(),
        ),
        fit(entry("refers", defined), one.clone()),
        fit(entry("type_list", with(json!({"type": ["object", "null"]}))), one.clone()),
        fit(entry("no_type", json!({"properties": {"a": text}})), one.clone()),
        fit(entry("only_dialect", json!({"$schema": "https://json-schema.org/draft/2020-12/schema"})), json!({})),
        fit(entry("empty", json!({})), json!({})),
        fit(entry("null", Value::Null), json!({})),
        fit(json!({"name": "absent"}).to_string(), json!({})),
        fit(entry(&"long_".repeat(20), plain()), one.clone()),
        fit(entry("a blank", plain()), one.clone()),
        fit(entry("späte/post", plain()), one.clone()),
        fit(entry("with,comma", plain()), one.clone()),
        fit(entry("same_name", plain()), one.clone()),
        fit("{\"name\":\"x\",\"name\":\"doubled\",\"inputSchema\":3,\"inputSchema\":{}}".to_owned(), json!({})),
        fit(
            json!({"name": "wrong_hints", "annotations": "reads", "title": 3, "description": {}, "outputSchema": []})
                .to_string(),
            json!({}),
        ),
        fit(json!({"name": "long_words", "description": long_words}).to_string(), json!({})),
    ]
}

/// Returns the entries that no agent can get, with the name and the reason of each.
fn unfit() -> Vec<(String, &'static str, &'static str)> {
    let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
    let raw = |name: &str, schema: &str| format!("{{\"name\":\"{name}\",\"inputSchema\":{schema}}}");
    vec![
        ("3".to_owned(), "", "entry"),
        ("null".to_owned(), "", "entry"),
        ("{\"inputSchema\":{}}".to_owned(), "", "name"),
        ("{\"name\":7}".to_owned(), "", "name"),
        (raw("bell\\u0007", "{}"), "bell\u{7}", "name"),
        (raw("twin", "{}"), "twin", "twice"),
        (raw("twin", "{\"type\":\"object\"}"), "twin", "twice"),
        (raw("same.name", "{}"), "same.name", "name_taken"),
        (raw("list_schema", "{\"type\":\"array\"}"), "list_schema", "schema"),
        (raw("text_schema", "\"none\""), "text_schema", "schema"),
        (raw("far", "{\"$ref\":\"https://example.com/schema\"}"), "far", "schema"),
        (raw("circle", "{\"$ref\":\"#\"}"), "circle", "schema"),
        (raw("odd_property", "{\"type\":\"object\",\"properties\":{\"a\":1}}"), "odd_property", "schema"),
        (
            json!({"name": "talkative", "description": "w".repeat(DESCRIPTION_BYTES_MAX + 1)}).to_string(),
            "talkative",
            "description",
        ),
        (raw("deep", &format!("{{\"default\":{deep}}}")), "deep", "unreadable"),
        (raw("half_a_pair", "{\"title\":\"\\ud800\"}"), "half_a_pair", "unreadable"),
        (raw("no_number", "{\"default\":NaN}"), "no_number", "unreadable"),
        (json!({"name": "huge", "description": "w".repeat(300_000)}).to_string(), "huge", "unreadable"),
    ]
}

/// Returns the tool of this name in what `mcp show` prints.
fn tool<'a>(shown: &'a Value, name: &str) -> &'a Value {
    let tools = shown["tools"].as_array().expect("tools");
    tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{name}: {tools:?}"))
}

/// Calls a tool by its name on the server, as `mcp show` has it for models.
fn call_tool(host: &TestHost, server: &str, name: &str, arguments: &Value) -> (Value, String) {
    let shown = show(host, server);
    let offered = tool(&shown, name)["offered_as"].as_str().expect("a name for models").to_owned();
    call(host, &offered, &format!("/allow send -- use {offered} {arguments}"))
}

#[test]
fn odd_tool_is_unfit_and_the_others_are_called() {
    let servers = ListedServers::start();
    let (fit, unfit) = (fit(), unfit());
    let entries: Vec<String> =
        unfit.iter().map(|(entry, ..)| entry.clone()).chain(fit.iter().map(|fit| fit.entry.clone())).collect();
    let url = servers.list("odd", Listed::page(&entries));
    let host = host();
    let added = add(&host, "odd", &["--url", &url]);
    assert!(added["digest"].is_string(), "{added}");
    let shown = show(&host, "odd");
    for (_, name, reason) in unfit.iter().filter(|(_, name, _)| !name.is_empty()) {
        let tool = tool(&shown, name);
        assert_eq!((&tool["unfit"]["reason"], &tool["offered_as"]), (&json!(reason), &Value::Null), "{tool}");
        assert!(tool["unfit"]["words"].as_str().is_some_and(|words| !words.is_empty()), "{tool}");
    }
    let nameless: Vec<&Value> =
        shown["tools"].as_array().expect("tools").iter().filter(|tool| tool["name"] == "").collect();
    assert_eq!(nameless.iter().filter(|tool| tool["unfit"].is_object()).count(), 4, "{nameless:?}");
    let text = host.ctl(&["mcp", "show", "odd"]).ok().stdout;
    assert!(text.contains("no agent can get twin:") && text.contains("no agent can get talkative:"), "{text}");

    let digest = added["digest"].as_str().expect("a digest");
    let confirmed = host.ctl(&["--json", "mcp", "confirm", "odd", "--digest", digest, "--yes"]).ok().json();
    let page = host.ctl(&["inbox", "show", confirmed["id"].as_str().expect("an id")]).ok().stdout;
    assert!(page.contains("NOT accepted is \"twin\", which no agent can get"), "{page}");
    assert!(page.contains(LAST_LINE), "a description is whole: {page}");
    host.ctl(&["mcp", "grant", "a", "odd", "--yes"]).ok();
    let granted = show(&host, "odd")["agents"][0]["tools"].clone();
    assert_eq!(granted.as_array().map(Vec::len), Some(fit.len()), "{granted}");
    for name in ["twin", "talkative", "same.name"] {
        let refused = host.ctl(&["--json", "mcp", "grant", "a", "odd", "--tools", name, "--yes"]).refused(name);
        assert!(refused.stderr.contains("mcp_tool_unknown"), "{}", refused.stderr);
    }
    for Fit { entry, arguments } in &fit {
        let name = serde_json::from_str::<Value>(entry).expect("an entry")["name"].as_str().expect("a name").to_owned();
        let (said, answer) = call_tool(&host, "odd", &name, arguments);
        assert_eq!(said["status"], "done", "{name}: {said} {answer}");
        let expected = format!("{} got {arguments}", json!(name));
        assert!(answer.contains(&expected), "{name}: {answer}");
    }
    // An argument that no part of the schema names has no rule.
    let (said, _) = call(&host, "z", "/allow send -- use odd__one_of {\"a\":\"x\",\"z\":\"y\"}");
    assert_eq!(said["code"], "call_unclassified", "{said}");
}

#[test]
fn fault_in_a_later_listing_concerns_its_tool_alone() {
    let servers = ListedServers::start();
    let plain = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let names = ["good", "schema", "twin", "name_taken", "gone", "talkative"];
    let entries = names.map(|name| entry(name, plain.clone()));
    let url = servers.list("later", Listed::page(&entries));
    let host = host();
    let reads = |name: &str| {
        format!(
            "[[tool]]\nname = \"{name}\"\nclass = \"read\"\nreach = \"outside\"\neffect = \"reads\"\n\
             arguments.a = {{ rule = \"free\" }}\n"
        )
    };
    let manifest = names.map(reads).concat();
    ready(&host, "later", &["--url", &url], Some(&manifest));
    let later = [
        entries[0].clone(),
        entry("schema", json!({"type": "array"})),
        entries[2].clone(),
        entries[2].clone(),
        entries[3].clone(),
        entry("name.taken", plain.clone()),
        json!({"name": "talkative", "description": "w".repeat(9000), "inputSchema": plain}).to_string(),
        "3".to_owned(),
    ];
    servers.change("later", Listed::page(&later));
    // The answer to the first call says that the tools changed.
    for thread in ["t1", "t2"] {
        let (said, _) = call(&host, thread, "use later__good {\"a\":\"x\"}");
        assert_eq!((&said["status"], &said["class"]), (&json!("done"), &json!("read")), "{said}");
    }
    for (name, is_current) in
        [("schema", false), ("twin", false), ("gone", false), ("talkative", false), ("name_taken", true)]
    {
        let (said, _) = call(&host, name, &format!("use later__{name} {{\"a\":\"x\"}}"));
        let expected = if is_current { json!("done") } else { json!("refused") };
        assert_eq!(said["status"], expected, "{name}: {said}");
        assert!(is_current || said["code"] == "call_server_changed", "{name}: {said}");
    }
    let shown = show(&host, "later");
    for (name, reason) in
        [("schema", "schema"), ("twin", "twice"), ("name.taken", "name_taken"), ("talkative", "description")]
    {
        assert_eq!(tool(&shown, name)["unfit"]["reason"], reason, "{shown}");
    }
    // The rules of the others stay, so that they can be confirmed again.
    assert_eq!((&tool(&shown, "good")["class"], &shown["state"]), (&json!("read"), &json!("changed")), "{shown}");
    let digest = shown["digest"].as_str().expect("a digest").to_owned();
    let manifest = host.ctl(&["mcp", "show", "later", "--manifest"]).ok().stdout;
    let file = host.home.with_file_name("later.toml");
    std::fs::write(&file, manifest).expect("written");
    let file = file.to_str().expect("UTF-8").to_owned();
    host.ctl(&["mcp", "confirm", "later", "--digest", &digest, "--manifest", &file, "--yes"]).ok();
    let left = show(&host, "later")["agents"][0]["tools"].clone();
    assert_eq!(left, json!(["good", "name_taken"]));
    let (said, _) = call(&host, "t3", "use later__good {\"a\":\"x\"}");
    assert_eq!((&said["status"], &said["class"]), (&json!("done"), &json!("read")), "{said}");
}

#[test]
fn cursor_is_read_by_its_era_and_a_stuck_one_ends_the_listing() {
    let servers = ListedServers::start();
    let host = host();
    let page = |name: &str, next: Value| {
        json!({"tools": [{"name": name}, {"name": "good", "inputSchema": {"type": "object"}}], "nextCursor": next})
            .to_string()
    };
    type Pages = Vec<(Option<&'static str>, String)>;
    let rows: [(&str, bool, Pages, &[&str], usize); 8] = [
        ("one", false, vec![(None, page("a", json!("")))], &["a"], 0),
        ("two", false, vec![(None, page("a", json!("x"))), (Some("x"), page("b", json!("")))], &["a", "b"], 0),
        ("stuck", false, vec![(None, page("a", json!("x")))], &["a"], 1),
        (
            "circle",
            false,
            vec![(None, page("a", json!("x"))), (Some("x"), page("b", json!("y"))), (Some("y"), page("c", json!("x")))],
            &["a", "b", "c"],
            1,
        ),
        ("number", false, vec![(None, page("a", json!(2)))], &["a"], 1),
        ("newer", true, vec![(None, page("a", json!(""))), (Some(""), page("b", json!(null)))], &["a", "b"], 0),
        ("newer-stuck", true, vec![(None, page("a", json!(""))), (Some(""), page("b", json!("")))], &["a", "b"], 1),
        ("fresh", false, vec![(None, page("a", json!("x"))), (Some("x"), page("a", json!("y")))], &["a"], 1),
    ];
    for (name, is_stateless, pages, tools, remarks) in rows {
        let url = servers.list(name, Listed { is_stateless, pages });
        add(&host, name, &["--url", &url]);
        let shown = show(&host, name);
        let listed: Vec<&str> =
            shown["tools"].as_array().expect("tools").iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert_eq!(listed, [tools, &["good"]].concat(), "{name}: {shown}");
        assert!(shown["tools"].as_array().expect("tools").iter().all(|tool| tool.get("unfit").is_none()), "{shown}");
        assert_eq!(shown["remarks"].as_array().map_or(0, Vec::len), remarks, "{name}: {shown}");
        assert_eq!(shown["era"], if is_stateless { "stateless" } else { "session" }, "{name}");
    }
    let text = host.ctl(&["mcp", "show", "stuck"]).ok().stdout;
    assert!(text.contains("page 2 names a cursor that an earlier page named"), "{text}");
    ready(
        &host,
        "stuck",
        &["--url", &servers.list("stuck", Listed { is_stateless: false, pages: vec![(None, page("a", json!("x")))] })],
        None,
    );
    let (said, answer) = call_tool(&host, "stuck", "good", &json!({}));
    assert_eq!(said["status"], "done", "{said} {answer}");
}

/// Asks for a tool by one of its words, and then says what it got.
fn act_searching(seen: &Seen) -> Act {
    match seen.results().last() {
        Some(result) => Act::Say(result.clone()),
        None => {
            let search = json!({"query": "tulips", "max": 1});
            Act::Call(String::new(), vec![("find_tools".to_owned(), search)])
        }
    }
}

#[test]
fn long_description_is_cut_for_a_model_and_whole_on_request() {
    let (servers, model) = (ListedServers::start(), Server::start(act_searching));
    let host = host();
    host.add_model(&model.url());
    host.ctl(&["agent", "set", "a", "--model", "m", "--yes"]).ok();
    let described = |number: usize| {
        let about = if number == 3 { "Plants tulips." } else { "Plants." };
        let words = format!("{about} {}", "word ".repeat(1600));
        json!({"name": format!("t{number}"), "description": format!("{words}\n{LAST_LINE}")}).to_string()
    };
    let mut entries: Vec<String> = (0..6).map(described).collect();
    entries.push(json!({"name": "short", "description": LAST_LINE}).to_string());
    ready(&host, "long", &["--url", &servers.list("long", Listed::page(&entries))], None);
    let said = host.ctl(&["--json", "chat", "a", "find it"]).ok().json();
    let found = said["reply"].as_str().expect("an answer");
    assert!(found.contains("long__t3") && found.contains(LAST_LINE), "{found}");
    let tools = model.seen()[0].body["tools"].as_array().expect("tools").clone();
    let description = |name: &str| {
        let tool = tools.iter().find(|tool| tool["function"]["name"] == name).unwrap_or_else(|| panic!("{name}"));
        tool["function"]["description"].as_str().expect("a text").to_owned()
    };
    let cut = description("long__t3");
    assert!((4_000..8_000).contains(&cut.len()) && cut.ends_with("find_tools has the rest)"), "{}", cut.len());
    assert_eq!(description("long__short"), LAST_LINE);
    let bytes: usize = (0..6).map(|number| description(&format!("long__t{number}")).len()).sum();
    assert!(bytes <= 40 << 10, "{bytes}");
}
