//! Skills from the package to their use, with the real daemon, the sandbox and `ironctl`: added, asked for in the chat, upgraded, taken
//! back, removed, and the same after kills.

mod foreign;
mod hostile;
mod killed;
mod network;
mod shapes;

use crate::e2e::changes::notices;
use crate::support::client::{self, Client, Raw};
use crate::support::host_fixture::{Answer, Build, TestHost, wait_for};
use ironclaw_skill::author::{self, SecretKey};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A host with an agent `a`, a source of skills and a key that it trusts.
pub(crate) struct SkillFixture {
    pub(crate) host: TestHost,
    pub(crate) directory: tempfile::TempDir,
    pub(crate) key: SecretKey,
}

/// The steps of a resolution.
pub(crate) const POINTS: [&str; 2] = ["skill_unpacked", "skill_resolved"];

/// Instructions that a test finds again.
const TEXT: &str = "Read /skills/weather/references/codes.md first. The word is heron.";

impl SkillFixture {
    pub(crate) fn new(build: Build) -> Self {
        Self::on(TestHost::own(build))
    }

    /// Starts this host.
    pub(crate) fn on(host: TestHost) -> Self {
        let directory = tempfile::Builder::new().prefix("skills").tempdir().expect("a directory");
        std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
        let pair = author::generate_key(None).expect("a key");
        let key = SecretKey::parse(&pair.secret, None).expect("a key");
        let public = directory.path().join("own.pub");
        std::fs::write(&public, &pair.public).expect("written");
        host.up();
        host.agent("a");
        let fixture = Self { host, directory, key };
        fixture.host.ctl(&["skill", "source", "add", "own", fixture.source().to_str().expect("UTF-8")]).ok();
        fixture.host.ctl(&["skill", "key", "add", "own", public.to_str().expect("UTF-8")]).ok();
        fixture
    }

    pub(crate) fn source(&self) -> PathBuf {
        let source = self.directory.path().join("source");
        std::fs::create_dir_all(&source).expect("made");
        source
    }

    /// Writes a skill with these grants, packs it, signs it and puts it into the source. Returns the package.
    pub(crate) fn publish(&self, name: &str, version: &str, grants: &str, text: &str) -> PathBuf {
        let directory = self.directory.path().join(format!("{name}-{version}"));
        let _ = std::fs::remove_dir_all(&directory);
        for part in ["scripts", "references"] {
            std::fs::create_dir_all(directory.join(part)).expect("made");
        }
        let write = |path: &str, text: &str| std::fs::write(directory.join(path), text).expect("written");
        write("skill.toml", &format!("name = \"{name}\"\nversion = \"{version}\"\n{grants}"));
        write("SKILL.md", &format!("---\nname: {name}\ndescription: Tells the weather of {version}.\n---\n{text}\n"));
        write("references/codes.md", "Code 7 is rain.\n");
        write("scripts/look.sh", "#!/bin/sh\necho looked $1\n");
        self.pack(&directory, name, version)
    }

    /// Packs and signs a directory into the source.
    pub(crate) fn pack(&self, directory: &Path, name: &str, version: &str) -> PathBuf {
        let bytes = author::pack(directory).expect("packed");
        self.put(&bytes, name, version, &format!("skill {name} {version}"))
    }

    /// Signs bytes with a trusted comment and puts them into the source.
    pub(crate) fn put(&self, bytes: &[u8], name: &str, version: &str, comment: &str) -> PathBuf {
        let file = self.source().join(format!("{name}-{version}.skill"));
        let signature = author::sign(bytes, &self.key, comment, false).expect("signed");
        std::fs::write(&file, bytes).expect("written");
        std::fs::write(file.with_extension("skill.minisig"), signature).expect("written");
        file
    }

    pub(crate) fn add(&self, skill: &str) -> Answer {
        self.host.ctl(&["--json", "skill", "add", skill, "--agent", "a", "--yes"])
    }

    pub(crate) fn skills(&self) -> Vec<Value> {
        let list = self.host.ctl(&["--json", "skill", "list", "--agent", "a"]).ok().json();
        list.as_array().expect("a list").clone()
    }

    pub(crate) fn agent(&self) -> Value {
        self.host.ctl(&["--json", "agent", "show", "a"]).ok().json()
    }

    pub(crate) fn has_tool(&self, tool: &str) -> bool {
        self.agent()["enabled_tools"].as_array().expect("a list").iter().any(|own| own == tool)
    }

    fn pending(&self) -> Option<String> {
        let list = self.host.ctl(&["--json", "inbox", "list", "--type", "change"]).ok().json();
        list.as_array().expect("a list").first().map(|change| change["id"].as_str().expect("an id").to_owned())
    }
}

const WITH_COMMANDS: &str = "[grants]\ntools = [\"run_command\"]\n";

#[test]
fn skill_is_asked_for_approved_used_and_taken_back() {
    let fixture = SkillFixture::new(Build::Plain);
    let host = &fixture.host;
    host.ctl(&["agent", "set", "a", "--add-tool", "skill_install", "--yes"]).ok();
    fixture.publish("weather", "1.0.0", WITH_COMMANDS, TEXT);
    let asked = host.say("a", "install skill weather latest");
    assert!(asked.contains("pending as chg_"), "{asked}");
    let change = fixture.pending().expect("a change");
    let shown = host.ctl(&["inbox", "show", &change]).ok().stdout;
    for words in ["scripts/look.sh", "run_command", "own", "weather", "1.0.0"] {
        assert!(shown.contains(words), "{words} is not in\n{shown}");
    }
    assert!(!fixture.has_tool("run_command"));
    let script = host.ctl(&["skill", "show", "weather", "--file", "scripts/look.sh"]).ok().stdout;
    assert!(script.contains("echo looked"), "{script}");
    host.ctl(&["--json", "skill", "show", "weather", "--file", "../own.pub"]).refused("skill_file");
    host.ctl(&["approve", &change]).ok();
    wait_for("the skill", || fixture.skills().len() == 1);
    let is_told = || notices(host).iter().any(|text| text.contains(&change) && text.contains("is applied"));
    wait_for("the notice in the conversation", is_told);
    assert!(fixture.has_tool("run_command"));
    // The same conversation uses it.
    assert!(host.say("a", "use skill weather").contains("heron"));
    assert!(host.say("a", "use skill weather references/codes.md").contains("Code 7"));
    assert!(host.say("a", "run sh /skills/weather/scripts/look.sh now").contains("looked now"));
    let denied = host.say("a", "run echo x > /skills/weather/SKILL.md || echo read-only");
    assert!(denied.contains("read-only"), "{denied}");
    // Another version, with fewer grants: the agent loses what came with the first one.
    fixture.publish("weather", "1.1.0", "", "The word is crane.");
    let outdated = host.ctl(&["--json", "skill", "list", "--agent", "a", "--outdated"]).ok().json();
    assert_eq!(outdated[0]["newest"], "1.1.0");
    let page = host.ctl(&["skill", "upgrade", "weather", "--agent", "a", "--yes"]).ok().stdout;
    for words in ["from version", "1.0.0", "1.1.0", "Removed: \"run_command\""] {
        assert!(page.contains(words), "{words} is not in\n{page}");
    }
    assert_eq!((fixture.skills()[0]["version"].as_str(), fixture.has_tool("run_command")), (Some("1.1.0"), false));
    assert!(host.say("a", "use skill weather").contains("crane"));
    // An older one only by name.
    let silent = host.say("a", "install skill weather 1.0.0");
    assert!(silent.contains("skill_downgrade"), "{silent}");
    fixture.add("weather@1.0.0").refused("skill_downgrade");
    host.ctl(&["skill", "set", "weather", "--agent", "a", "--pin"]).ok();
    let back = ["--json", "skill", "upgrade", "weather", "--agent", "a", "--to", "1.0.0", "--yes"];
    host.ctl(&back).refused("skill_pinned");
    host.ctl(&["skill", "set", "weather", "--agent", "a", "--unpin"]).ok();
    host.ctl(&["skill", "upgrade", "weather", "--agent", "a", "--to", "1.0.0", "--yes"]).ok();
    assert_eq!((fixture.skills()[0]["version"].as_str(), fixture.has_tool("run_command")), (Some("1.0.0"), true));
    host.ctl(&["skill", "remove", "weather", "--agent", "a", "--yes"]).ok();
    assert_eq!((fixture.skills().len(), fixture.has_tool("run_command")), (0, false));
    assert!(!host.say("a", "use skill weather").contains("heron"));
    let installed = host.entries("skill.installed");
    let versions: Vec<_> =
        installed.iter().map(|entry| entry["data"]["version"].as_str().expect("a version")).collect();
    assert_eq!(versions, ["1.0.0", "1.1.0", "1.0.0"]);
    assert_eq!((host.entries("skill.resolved").len(), host.entries("skill.removed").len()), (2, 1));
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn skill_brings_hosts_and_schedules_and_takes_only_its_own() {
    let fixture = SkillFixture::new(Build::Plain);
    let host = &fixture.host;
    let grants = "[grants]\ntools = [\"http_fetch\", \"read_file\"]\npersona = \"Be kind.\"\n\
        [[grants.egress]]\nhost = \"api.example\"\nmethods = [\"GET\"]\npaths = [\"/v1/{place}\"]\n\
        [[grants.schedules]]\nprompt = \"look at the weather\"\ncron = \"0 8 * * *\"\n";
    fixture.publish("weather", "1.0.0", grants, TEXT);
    fixture.add("weather").ok();
    let schedules = || host.ctl(&["--json", "schedule", "list"]).ok().json().as_array().expect("a list").len();
    let hosts = || host.ctl(&["--json", "egress", "list", "a"]).ok().json().as_array().expect("a list").len();
    assert_eq!((schedules(), hosts(), fixture.has_tool("http_fetch")), (1, 1, true));
    host.ctl(&["skill", "remove", "weather", "--agent", "a", "--yes"]).ok();
    // read_file was the agent's own.
    let tools = (fixture.has_tool("http_fetch"), fixture.has_tool("read_file"));
    assert_eq!((schedules(), hosts(), tools), (0, 0, (false, true)));
    // The agent loses two grants of the skill, and a person gives them again.
    fixture.add("weather").ok();
    host.ctl(&["agent", "set", "a", "--remove-tool", "http_fetch", "--yes"]).ok();
    host.ctl(&["egress", "revoke", "a", "api.example", "--yes"]).ok();
    assert_eq!((hosts(), fixture.has_tool("http_fetch")), (0, false));
    host.ctl(&["agent", "set", "a", "--add-tool", "http_fetch", "--yes"]).ok();
    let again = serde_json::json!({"host": "api.example", "methods": ["GET"], "paths": ["/v1/{place}"]});
    host.change("a", "egress", &again);
    host.ctl(&["skill", "remove", "weather", "--agent", "a", "--yes"]).ok();
    assert_eq!((schedules(), hosts(), fixture.has_tool("http_fetch")), (0, 1, true), "they are the person's now");
}

#[test]
fn role_and_direct_changes_install_no_skill() {
    let fixture = SkillFixture::new(Build::Plain);
    let host = &fixture.host;
    let file = fixture.publish("weather", "1.0.0", WITH_COMMANDS, TEXT);
    let digest = ironclaw_contract::canonical::Digest::of(&std::fs::read(file).expect("read"));
    for payload in [
        serde_json::json!({"name": "weather", "version": "1.0.0", "digest": digest}),
        serde_json::json!({"name": "weather", "version": "1.0.0", "digest": digest, "signer": "0", "persona": "x"}),
    ] {
        host.submit("a", "skills", &payload).refused("skill_direct");
    }
    host.submit("a", "permissions", serde_json::json!({"access": "everyone", "skill": "weather"}))
        .refused("payload_malformed");
    // An admin of the agent alone decides on no skill.
    host.add_linked_person("mia", "loopback:mia");
    host.change("a", "permissions", &serde_json::json!({"grant": [{"identity": "loopback:mia", "role": "admin"}]}));
    let mia = client::Raw::of_person(host, "mia");
    let body = serde_json::json!({"agent": "a", "skill": "weather"}).to_string();
    let answer = mia.try_ask("POST", "/v1/skills/install", &body).expect("an answer");
    assert!(format!("{answer:?}").contains("role_too_low"), "{answer:?}");
    assert!(host.entries("skill.resolved").is_empty(), "the source was not reached");
    // An agent proposes it by the other tool too, and cannot write its content.
    let words = r#"change skill_install {"skill":"weather","version":"1.0.0"} because we need it"#;
    assert!(host.say("a", words).contains("pending as chg_"));
    let words = r#"change skill_install {"skill":"weather","version":"1.0.0","persona":"x"} because we need it"#;
    assert!(!host.say("a", words).contains("pending"), "content in the request");
}

#[test]
fn revoked_key_or_version_takes_the_skill_out_of_use() {
    let fixture = SkillFixture::new(Build::Plain);
    let host = &fixture.host;
    fixture.publish("weather", "1.0.0", WITH_COMMANDS, TEXT);
    fixture.add("weather").ok();
    assert!(host.say("a", "use skill weather").contains("heron"));
    host.ctl(&["skill", "revoke", "weather@1.0.0"]).ok();
    assert_eq!(fixture.skills()[0]["state"], "revoked");
    assert!(!host.say("a", "use skill weather").contains("heron"));
    assert!(!host.say("a", "run cat /skills/weather/SKILL.md").contains("heron"));
    fixture.add("weather@1.0.0").refused("skill_revoked");
    fixture.publish("weather", "1.0.1", WITH_COMMANDS, TEXT);
    host.ctl(&["skill", "upgrade", "weather", "--agent", "a", "--yes"]).ok();
    assert!(host.say("a", "use skill weather").contains("heron"));
    host.ctl(&["--json", "skill", "key", "remove", "own"]).refused("skill_key_in_use");
    host.ctl(&["skill", "key", "revoke", "own"]).ok();
    assert_eq!(fixture.skills()[0]["state"], "key_revoked");
    assert!(!host.say("a", "use skill weather").contains("heron"));
    fixture.publish("weather", "1.0.2", WITH_COMMANDS, TEXT);
    fixture.add("weather").refused("skill_key_revoked");
    let public = fixture.directory.path().join("own.pub");
    host.ctl(&["--json", "skill", "key", "add", "again", public.to_str().expect("UTF-8")]).refused("skill_key_exists");
    host.ctl(&["--json", "skill", "key", "remove", "own"]).refused("skill_key_revoked");
}

#[test]
fn damaged_skill_is_shown_and_sessions_continue_when_mended() {
    let fixture = SkillFixture::new(Build::Plain);
    fixture.publish("weather", "1.0.0", WITH_COMMANDS, TEXT);
    fixture.add("weather").ok();
    fixture.host.down();
    std::fs::write(fixture.host.home.join("config.toml"), "[session]\nbackoff_ms = 1\n").expect("written");
    let entries = std::fs::read_dir(fixture.host.home.join("skills")).expect("a directory").flatten();
    let text = entries.map(|entry| entry.path().join("SKILL.md")).find(|path| path.is_file()).expect("a package");
    std::fs::remove_file(&text).expect("removed");
    std::fs::write(&text, "other").expect("written");
    fixture.host.up();
    let host = &fixture.host;
    let check = || {
        let doctor = host.ctl(&["--json", "doctor"]);
        let checks = doctor.json()["checks"].as_array().expect("a list").clone();
        let own = checks.into_iter().find(|check| check["name"] == "skills").expect("a check");
        (doctor.code, own)
    };
    wait_for("the damage", || host.status()["damaged_skills"][0]["name"] == "weather");
    assert_eq!(host.status()["damaged_skills"][0]["agents"], json!(["a"]));
    let repair = "ironctl skill show weather --version 1.0.0";
    assert!(host.status()["host"]["warnings"].to_string().contains(repair));
    let (code, own) = check();
    assert_eq!((code, &own["ok"], own["remedy"].as_str()), (1, &json!(false), Some(repair)), "{own}");

    let client = Client::of(host);
    let sent = ["one", "two"].map(|thread| client.send_in("a", thread, "echo word", thread).expect("recorded"));
    let states = || {
        let sessions = Raw::of(host).get("/v1/sessions").1;
        sessions.as_array().expect("a list").iter().map(|one| one["state"].clone()).collect::<Vec<_>>()
    };
    wait_for("both sessions to be parked", || states() == ["parked", "parked"]);
    host.ctl(&["skill", "show", "weather", "--version", "1.0.0"]).ok();
    for one in sent {
        let id = one["message_id"].as_str().expect("an id");
        wait_for("the answer", || client.message(id, Duration::ZERO).is_ok_and(|view| view["status"] == "delivered"));
    }
    assert_eq!(host.entries("session.released").len(), 2);
    assert_eq!(host.status()["damaged_skills"], json!(null));
    assert_eq!(check().1["ok"], json!(true));
}

#[test]
fn bundled_skill_is_installed_in_one_command() {
    let mut host = TestHost::own(Build::Plain);
    let directory = tempfile::Builder::new().prefix("own").tempdir().expect("a directory");
    std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
    for (variable, place) in [("XDG_CONFIG_HOME", "config"), ("XDG_DATA_HOME", "data")] {
        host.set_env(variable, directory.path().join(place).to_str());
    }
    host.up();
    host.agent("a");
    // The name that the manual uses for a directory of the operator.
    host.ctl(&["skill", "source", "add", "own", directory.path().to_str().expect("UTF-8")]).ok();
    host.ctl(&["skill", "demo", "--agent", "a", "--yes"]).ok();
    let list = || host.ctl(&["--json", "skill", "list", "--agent", "a"]).ok().json();
    assert_eq!(list()[0]["name"], "meeting-notes");
    assert!(host.say("a", "use skill meeting-notes").contains("name: meeting-notes"));
    host.ctl(&["skill", "demo", "--agent", "a", "--yes"]).ok();
    let keys = host.ctl(&["--json", "skill", "key", "list"]).ok().json();
    assert_eq!((list().as_array().map(Vec::len), keys.as_array().map(Vec::len)), (Some(1), Some(1)));
}

#[test]
fn skill_survives_a_backup_into_an_empty_home() {
    let fixture = SkillFixture::new(Build::Plain);
    let host = &fixture.host;
    fixture.publish("weather", "1.0.0", WITH_COMMANDS, TEXT);
    fixture.add("weather").ok();
    let file = fixture.directory.path().join("backup");
    host.ctl(&["backup", "create", file.to_str().expect("UTF-8")]).ok();
    host.down();
    let name = file.to_str().expect("UTF-8");
    host.ctl(&["backup", "restore", name, "--replace", "--yes"]).ok();
    host.up();
    assert!(host.say("a", "run sh /skills/weather/scripts/look.sh now").contains("looked now"));
}
