//! The templates beside the listings that they were written for, in `templates/listings`.
//!
//! A long definition is there as its digest with the names of its arguments.

use super::super::proposal::{Surroundings, propose};
use super::super::server;
use super::*;
use crate::class::Class;
use serde_json::json;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The table of the manual.
const MANUAL: &str = "../../docs/operate/mcp.md";

fn template(name: &str) -> &'static Template {
    ALL.iter().find(|template| template.name() == name).expect("a template of this name")
}

/// Returns the listed definitions of the server of a template, of all versions.
fn listed(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("templates/listings/{name}.json"));
    serde_json::from_str(&fs::read_to_string(path).expect("a listing")).expect("JSON")
}

/// Returns whether an entry of a listing is only its digest and its arguments.
fn is_short(entry: &Value) -> bool {
    entry.get("digest").is_some()
}

fn digest_of(entry: &Value) -> Digest {
    match entry["digest"].as_str() {
        Some(digest) => digest.parse().expect("a digest"),
        None => digest(entry),
    }
}

/// Returns an entry with a schema, also for a short one.
fn with_schema(entry: &Value) -> Value {
    let Some(arguments) = entry["arguments"].as_array().filter(|_| is_short(entry)) else { return entry.clone() };
    let properties: BTreeMap<&str, Value> =
        arguments.iter().filter_map(|name| Some((name.as_str()?, json!({})))).collect();
    json!({ "name": entry["name"], "inputSchema": { "type": "object", "properties": properties } })
}

fn registered<'a>(packages: &'a [String], program: &'a str) -> Identity<'a> {
    Identity { packages, program: Some(program), ..Identity::default() }
}

fn packages(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn template_is_for_its_package_alone_and_its_program() {
    let files = "npm:@modelcontextprotocol/server-filesystem";
    for (named, program) in [
        (&[][..], "mcp-server-filesystem"),
        (&["npm:server-filesystem"], "mcp-server-filesystem"),
        (&["pypi:@modelcontextprotocol/server-filesystem"], "mcp-server-filesystem"),
        (&["npm:@modelcontextprotocol/server-filesystem-2"], "mcp-server-filesystem"),
        (&[files, "npm:left-pad"], "mcp-server-filesystem"),
        (&[files, "pypi:mcp"], "mcp-server-filesystem"),
        (&[files, files], "mcp-server-filesystem"),
        (&[files], "node"),
        (&[files], "/state/mcp-server-filesystem"),
        (&[files], ""),
        (&["pypi:mcp-server-git"], "python"),
        (&["pypi:mcp"], "mcp-server-sqlite"),
    ] {
        let named = packages(named);
        assert!(known(&registered(&named, program)).is_none(), "{named:?} {program}");
    }
    let named = packages(&[files]);
    let found = |identity: &Identity<'_>| known(identity).map(Template::name);
    assert_eq!(found(&registered(&named, "mcp-server-filesystem")), Some("filesystem"));
    assert_eq!(found(&Identity { packages: &named, ..Identity::default() }), None);
    let at = Identity { origin: Some("https://a.example"), ..registered(&named, "mcp-server-filesystem") };
    assert_eq!(found(&at), None);
    let beside = packages(&["pypi:mcp", "pypi:mcp-server-sqlite"]);
    assert_eq!(found(&registered(&beside, "mcp-server-sqlite")), Some("sqlite"));
}

#[test]
fn variable_that_can_bring_other_code_leaves_no_template() {
    let named = packages(&["npm:@modelcontextprotocol/server-memory"]);
    let has = |variables: &[&str]| {
        let variables = packages(variables);
        known(&Identity { variables: &variables, ..registered(&named, "mcp-server-memory") }).is_some()
    };
    for variables in [&["NODE_OPTIONS"][..], &["MEMORY_FILE_PATH", "LD_PRELOAD"], &["memory_file_path"]] {
        assert!(!has(variables), "{variables:?}");
    }
    assert!(has(&["MEMORY_FILE_PATH"]) && has(&[]));
}

#[test]
fn origin_is_equal_and_without_a_command() {
    let text = "name = 'a'\nversions = []\norigins = ['https://a.example']\n[digests]\n";
    let template = Template::parse(text).expect("a template");
    let at = |origin| Identity { origin: Some(origin), ..Identity::default() };
    assert!(template.is_of_server(&at("https://a.example")));
    for origin in ["http://a.example", "https://a.example:8443", "https://a.example.org", "https://b.a.example", ""] {
        assert!(!template.is_of_server(&at(origin)), "{origin}");
    }
    assert!(!template.is_of_server(&Identity { program: Some("a"), ..at("https://a.example") }));
    assert!(!template.is_of_server(&Identity { packages: &packages(&["npm:a"]), ..at("https://a.example") }));
    assert!(!template.is_of_server(&Identity::default()));
}

#[test]
fn other_definition_has_no_manifest() {
    let (files, git) = (template("filesystem"), template("git"));
    let entry = listed("filesystem").into_iter().find(|entry| entry["name"] == "read_text_file").expect("listed");
    assert_eq!(files.manifest(&entry).map(|manifest| manifest.class), Some(Class::Read));
    for (field, value) in [
        ("name", json!("read_file")),
        ("name", json!("read_text_files")),
        ("name", json!(null)),
        ("description", json!("Reads a file.")),
        ("annotations", json!({ "readOnlyHint": false })),
        ("inputSchema", json!({ "type": "object", "properties": { "path": {} } })),
        ("_meta", json!({})),
    ] {
        let mut other = entry.clone();
        other[field] = value;
        assert_eq!(files.manifest(&other), None, "{field}");
    }
    assert_eq!(git.manifest(&entry), None);
    assert_eq!(files.manifest(&json!("read_text_file")), None);
}

#[test]
fn each_template_is_read_and_has_a_server() {
    for text in SOURCES {
        let read = Template::parse(text);
        let template = read.unwrap_or_else(|error| panic!("{error}: {text}"));
        let (file, name) = (&template.file, template.name());
        assert!(file.packages.is_empty() == file.programs.is_empty(), "{name}");
        assert!(!file.packages.is_empty() || !file.origins.is_empty(), "{name}");
        assert!(file.packages.iter().chain(&file.beside).all(|named| named.contains(':')), "{name}");
        assert!(file.programs.iter().all(|program| !program.contains('/')), "{name}");
        assert!(template.tools.keys().eq(file.digests.keys()), "{name}: each tool with rules has digests");
    }
    let names: BTreeSet<&str> = ALL.iter().map(Template::name).collect();
    assert_eq!(names.len(), SOURCES.len(), "each name once");
    assert!(Template::parse("name = 'a'\nversions = []\nprogramms = []\n[digests]\n").is_err());
}

/// With another listing in `templates/listings`, the message has the digests for the file of the template.
#[test]
fn digests_are_those_of_the_listings() {
    for template in ALL.iter() {
        let mut listed_digests: BTreeMap<String, BTreeSet<Digest>> = BTreeMap::new();
        for entry in listed(template.name()) {
            let name = entry["name"].as_str().expect("a name").to_owned();
            listed_digests.entry(name).or_default().insert(digest_of(&entry));
        }
        listed_digests.retain(|name, _| template.tools.contains_key(name));
        let mut table = String::new();
        for (name, digests) in &listed_digests {
            let digests: Vec<String> = digests.iter().map(ToString::to_string).collect();
            writeln!(table, "{name} = {digests:?}").expect("a text takes text");
        }
        assert!(listed_digests == template.file.digests, "[digests] of {}:\n{table}", template.name());
    }
}

#[test]
fn manifest_fits_the_listing_as_one_of_an_operator_does() {
    for template in ALL.iter() {
        let (mut whole, mut all) = (0, listed(template.name()));
        all.retain(|entry| entry["name"].as_str().is_some_and(|name| template.tools.contains_key(name)));
        for entry in all {
            let rules = &template.tools[entry["name"].as_str().expect("a name")];
            let (short, entry) = (is_short(&entry), with_schema(&entry));
            let strict = Tools::strictest("s", slice::from_ref(&entry)).manifests.into_values().next();
            let strict = strict.unwrap_or_else(|| panic!("{}: {} can be offered", template.name(), rules.name));
            let mut given = rules.clone();
            given.arguments.retain(|name, _| strict.arguments.contains_key(name));
            let text = toml::to_string(&json!({ "tool": [given] })).expect("TOML");
            let tools = server::tool_manifests("s", slice::from_ref(&entry), Some(&text));
            let loosened = tools.unwrap_or_else(|error| panic!("{}: {error}", template.name()));
            if !short {
                whole += 1;
                let proposed = propose(&strict, &entry, Surroundings::Public, Some(template)).manifest;
                assert_eq!(loosened.manifests.into_values().next(), Some(proposed), "{}", rules.name);
            }
        }
        assert!(whole > 0 || listed(template.name()).iter().all(is_short), "{}", template.name());
    }
}

#[test]
fn rules_name_no_argument_that_no_version_has() {
    for template in ALL.iter() {
        for (name, rules) in &template.tools {
            let entries = listed(template.name()).into_iter().filter(|entry| entry["name"] == **name);
            let known: BTreeSet<String> = entries
                .flat_map(|entry| Tools::strictest("s", &[with_schema(&entry)]).manifests.into_values())
                .flat_map(|strict| strict.arguments.into_keys())
                .collect();
            assert!(rules.arguments.keys().eq(&known), "{} {name}: {known:?}", template.name());
        }
    }
}

#[test]
fn only_reading_and_local_tools_are_loosened() {
    let jailed = ["filesystem", "memory", "git", "sqlite", "text-editor", "everything", "playwright"];
    for template in ALL.iter() {
        for (name, rules) in &template.tools {
            let shown = format!("{} {name}", template.name());
            assert_ne!(rules.class, Class::Trade, "{shown}");
            assert!(rules.class != Class::Write || jailed.contains(&template.name()), "{shown} writes elsewhere");
            let is_floored = rules.arguments.values().any(|argument| argument.rule == Rule::Floor);
            assert!(rules.class != Class::Read || !is_floored, "{shown}: no floor of a reading tool asks");
            assert!(rules.class != Class::Send || is_floored, "{shown}: a sending tool says on what it acts");
            let words = ["delete", "push", "post", "send", "merge", "publish", "reply"];
            let tells = words.iter().any(|word| name.contains(word)) && name != "API-post-search";
            assert!(!tells || rules.class == Class::Send, "{shown}");
        }
    }
}

#[test]
fn proposal_has_the_rules_of_the_template_with_its_name() {
    let template = template("filesystem");
    let entry = listed("filesystem").into_iter().find(|entry| entry["name"] == "write_file").expect("listed");
    let strict =
        Tools::strictest("docs", slice::from_ref(&entry)).manifests.remove("write_file").expect("a fitting tool");
    let proposal = propose(&strict, &entry, Surroundings::Jail, Some(template));
    assert_eq!((proposal.manifest.name.as_str(), proposal.manifest.class), ("docs__write_file", Class::Write));
    assert_eq!(proposal.manifest.arguments["path"].kind, Some(InputType::Path));
    let parts: Vec<String> = proposal.reasons.iter().map(|reason| reason.part.to_string()).collect();
    assert_eq!(parts, ["class write", "content content"]);
    assert!(proposal.reasons.iter().all(|reason| reason.because.contains("\"filesystem\"")));
    let mut changed = entry;
    changed["description"] = json!("Writes a file.");
    let by_name = propose(&strict, &changed, Surroundings::Public, Some(template));
    assert_eq!(by_name, propose(&strict, &changed, Surroundings::Public, None));
    assert!(by_name.reasons.iter().all(|reason| !reason.because.contains("template")));
}

#[test]
fn rules_without_a_network_have_no_outward_value() {
    let entry = listed("memory").into_iter().find(|entry| entry["name"] == "delete_entities").expect("listed");
    let tools = Tools::strictest("s", slice::from_ref(&entry)).for_network(false);
    let strict = &tools.manifests["delete_entities"];
    let inside = propose(strict, &entry, Surroundings::Jail, Some(template("memory"))).manifest;
    assert_eq!((inside.class, inside.arguments["entityNames"]), (Class::Send, strict.arguments["entityNames"]));
    let outside = propose(strict, &entry, Surroundings::Public, Some(template("memory"))).manifest;
    assert!(outside.arguments["entityNames"].outward);
}

#[test]
fn listing_of_another_package_is_recognised_by_names_or_digest() {
    let found = |entries: &[Value]| resembled(entries).map(Template::name);
    let plain = |name: &str| json!({ "name": name, "inputSchema": {} });
    let names = |names: &[&str]| names.iter().map(|name| plain(name)).collect::<Vec<_>>();
    assert_eq!(found(&listed("filesystem")), Some("filesystem"));
    assert_eq!(found(&listed("fetch")[..1]), Some("fetch"), "one definition is enough");
    assert_eq!(found(&names(&["fetch"])), None, "one name is not");
    assert_eq!(found(&names(&["query"])), None);
    assert_eq!(found(&names(&["get_current_time", "convert_time", "other"])), Some("time"));
    assert_eq!(found(&names(&["read_file", "write_file", "list_directory"])), None, "3 of 14 names");
    assert_eq!(found(&[]), None);
    let mixed = [names(&["get_current_time", "convert_time"]), listed("calculator")].concat();
    assert_eq!(found(&mixed), Some("calculator"), "a definition counts more than names");
}

#[test]
fn manual_has_a_row_for_each_template() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(MANUAL);
    let manual = fs::read_to_string(path).expect("the manual");
    let rows: String = ALL.iter().map(row).collect();
    assert!(manual.contains(&rows), "the rows of {MANUAL}:\n{rows}");
}

/// Returns the row of a template in the manual.
fn row(template: &Template) -> String {
    let (named, versions) = template.read_versions();
    let registries: Vec<String> = named
        .iter()
        .filter_map(|package| package.split_once(':'))
        .map(|(registry, name)| format!("{} `{name}`", if registry == "pypi" { "PyPI" } else { registry }))
        .collect();
    let mut classes: BTreeMap<Class, usize> = BTreeMap::new();
    for rules in template.tools.values() {
        *classes.entry(rules.class).or_default() += 1;
    }
    let classes: Vec<String> = classes.iter().map(|(class, tools)| format!("{tools} {}", class.name())).collect();
    format!("| {} | {} | {} | {} |\n", template.name(), registries.join(", "), versions.join(", "), classes.join(", "))
}
