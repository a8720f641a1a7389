//! A search for keys, tokens and content in the home, in the log and in `/proc`, which must not contain them.
//!
//! See `erase` for content that must not remain even in encrypted form.

use crate::support::host_fixture::{Build, TestHost};
use crate::support::jail_fixture::host_users;
use crate::support::processes::{descendants, used};
use crate::support::record::{self, Needle};
use ironclaw_contract::ids::SessionId;
use std::path::Path;

/// One word for each kind of content. The word of the message is also in a reply and in a persona.
const CONTENT: [(&str, &str); 5] = [
    ("a message", "zinnober-message"),
    ("a file's name", "zinnober-name"),
    ("a file's text", "zinnober-text"),
    ("an attachment's name", "zinnober-attached"),
    ("an attachment's text", "zinnober-inside"),
];

#[test]
fn keys_tokens_and_content_are_not_readable_in_home_or_proc() {
    for user in host_users() {
        let host = TestHost::with(user, Build::Plain, None).configured("[log]\nlevel = \"debug\"\n").started_with("a");
        host.say("a", "echo zinnober-message");
        host.say("a", "write zinnober-name.txt: zinnober-text");
        host.say("a", "read no-such-zinnober-name.txt");
        host.say("a", "change persona to zinnober-message");
        host.ctl(&["agent", "add", "zinnober message"]).refused("");
        let attached = host.home.parent().expect("a directory").join("zinnober-attached.txt");
        std::fs::write(&attached, "zinnober-inside").expect("written");
        host.ctl(&["chat", "a", "hello", "--file", attached.to_str().expect("UTF-8")]).ok();

        let session: SessionId = host.session()["id"].as_str().expect("an id").parse().expect("an id");
        let master = std::fs::read(host.home.join("master.key")).expect("a key");
        let token = std::fs::read(host.home.join("owner.token")).expect("a token");
        let [queue, content] = record::session_keys(&host.home, session);
        let keys: Vec<Needle> = [("the master key", &master), ("the queue key", &queue), ("the content key", &content)]
            .into_iter()
            .flat_map(|(name, key)| Needle::key(name, key))
            .chain([Needle::new("the token", token)])
            .collect();
        let words: Vec<Needle> = CONTENT.iter().map(|(name, text)| Needle::new(*name, *text)).collect();
        let everything: Vec<Needle> = keys.iter().chain(&words).cloned().collect();

        let host_pid = host.pid().expect("it runs");
        let mut processes: Vec<i32> = descendants(host_pid).into_keys().map(|process| process.pid).collect();
        assert_eq!(used(host_pid).len(), 5, "{user:?}: the launcher, and two processes of each jail");
        processes.push(host_pid);
        for pid in processes {
            for file in ["environ", "cmdline", "comm"] {
                let shown = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
                check_absent(&everything, &shown, &format!("{user:?}: {file} of process {pid}"));
            }
        }
        // Archives of the ledger are plain files, and an export leaves the home.
        host.ctl(&["audit", "rotate"]).ok();
        let export = host.ctl(&["audit", "export"]).ok().stdout;
        assert!(export.contains("call.recorded") && export.contains("message.recorded"), "{user:?}: {export}");
        check_absent(&everything, export.as_bytes(), &format!("{user:?}: the exported ledger"));
        check_files(&host.home, &keys, &words, &format!("{user:?}, while it runs"));
        host.kill_host();
        check_files(&host.home, &keys, &words, &format!("{user:?}, after a crash"));
        host.up();
        host.say("a", "read zinnober-name.txt");
        host.down();
        check_files(&host.home, &keys, &words, &format!("{user:?}, after a stop"));
        let log = std::fs::read(host.home.join("logs/host.log")).expect("a log");
        assert!(Needle::new("", "awake").is_in(&log), "{user:?}: the log has entries");
    }
}

fn check_files(home: &Path, keys: &[Needle], words: &[Needle], when: &str) {
    let files = record::files(home);
    assert!(files.iter().any(|(path, _)| path.ends_with("state.db")) && files.len() > 6, "{when}: {}", files.len());
    for (path, bytes) in files {
        let place = format!("{} ({when})", path.display());
        let own = |needle: &&Needle| match path.to_str() {
            Some("master.key") => needle.name == "the master key, raw",
            Some("owner.token") => needle.name == "the token",
            _ => false,
        };
        for needle in keys.iter().filter(|needle| !own(needle)) {
            check_absent(std::slice::from_ref(needle), &bytes, &place);
        }
        if !path.components().any(|part| part.as_os_str() == "workspace") {
            check_absent(words, &bytes, &place);
            check_absent(words, path.as_os_str().as_encoded_bytes(), &format!("the name of {place}"));
        }
    }
}

fn check_absent(needles: &[Needle], haystack: &[u8], place: &str) {
    for needle in needles {
        assert!(!needle.is_in(haystack), "{} is in {place}", needle.name);
    }
}
