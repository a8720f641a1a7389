//! Tests of every known way out of the workspace, and then of the tools' purposes.

use super::*;
use ironclaw_contract::seam::limits::{BODY_BYTES_MAX, FRAME_BYTES_MAX};
use ironclaw_files::files;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::sys::stat::{Mode, SFlag, mknod};
use nix::unistd::mkfifo;
use serde_json::json;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

/// A workspace, and beside it a file that must not be reached.
struct Fixture {
    root: TempDir,
    tools: Tools,
}

impl Fixture {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(root.path().join("workspace")).expect("made");
        fs::create_dir(root.path().join("outside")).expect("made");
        fs::write(root.path().join("outside/secret"), "the secret").expect("written");
        let tools = Tools::open(&Paths::below(root.path()), None).expect("opened");
        Self { root, tools }
    }

    fn inside(&self, name: &str) -> PathBuf {
        self.root.path().join("workspace").join(name)
    }

    fn outside(&self) -> PathBuf {
        self.root.path().join("outside")
    }

    fn run(&self, tool: &str, arguments: serde_json::Value) -> Outcome {
        self.tools.run(tool, &arguments.to_string())
    }

    #[track_caller]
    fn success(&self, tool: &str, arguments: serde_json::Value) -> String {
        let outcome = self.run(tool, arguments);
        assert!(outcome.ok, "{}", outcome.body);
        outcome.body
    }

    #[track_caller]
    fn fails(&self, tool: &str, arguments: serde_json::Value, sentence: &str) {
        let outcome = self.run(tool, arguments.clone());
        assert!(!outcome.ok && outcome.body.contains(sentence), "{tool} {arguments}: {}", outcome.body);
    }

    /// Checks that every tool refuses this path with the sentence, and that the file outside is unchanged.
    #[track_caller]
    fn refuses(&self, path: &str, sentence: &str) {
        for (tool, arguments) in [
            ("read_file", json!({ "path": path })),
            ("write_file", json!({ "path": path, "content": "overwritten" })),
            ("write_file", json!({ "path": path, "content": "overwritten", "append": true })),
            ("list_dir", json!({ "path": path })),
            ("search_files", json!({ "path": path, "pattern": "." })),
        ] {
            self.fails(tool, arguments, sentence);
        }
        assert_eq!(fs::read_to_string(self.outside().join("secret")).expect("still there"), "the secret");
        assert_eq!(fs::read_dir(self.outside()).expect("listed").count(), 1, "no new file");
    }
}

#[test]
fn a_path_that_leaves_the_workspace_is_refused() {
    let fixture = Fixture::new();
    for path in ["..", "../outside/secret", "a/../../outside/secret", "/workspace/../outside/secret", "./../outside"] {
        fixture.refuses(path, "`..`");
    }
    for path in ["/etc/passwd", "/", "/workspaces/x", "//workspace/x", "/workspace-of-another/x", "/in/inbound.db"] {
        fixture.refuses(path, "outside of /workspace");
    }
    let outside = fixture.outside().join("secret");
    fixture.refuses(outside.to_str().expect("UTF-8"), "outside of /workspace");
}

#[test]
fn a_path_that_no_file_can_have_is_refused() {
    let fixture = Fixture::new();
    let long_name = "n".repeat(256);
    let long_path = "a/".repeat(600);
    let deep = "d/".repeat(33);
    for path in ["", "a\0b", &long_name, &long_path, &deep] {
        fixture.refuses(path, "a path has at most");
    }
    let outcome = fixture.run("read_file", json!({ "path": "line\nbreak" }));
    assert_eq!(outcome.body, "cannot read line\\nbreak: No such file or directory (os error 2)");
}

#[test]
fn link_is_refused_anywhere_on_the_path() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.inside("real")).expect("made");
    symlink(fixture.outside().join("secret"), fixture.inside("file")).expect("linked");
    symlink(fixture.outside(), fixture.inside("directory")).expect("linked");
    symlink("../../outside", fixture.inside("real/middle")).expect("linked");
    symlink("real", fixture.inside("harmless")).expect("linked");
    symlink("nowhere", fixture.inside("dangling")).expect("linked");
    for path in ["file", "directory", "directory/secret", "real/middle/secret", "real/middle", "harmless/x", "dangling"]
    {
        fixture.refuses(path, "links are not followed");
    }
    assert!(!fixture.inside("nowhere").exists(), "a write through a dangling link would make it");
    assert!(!fixture.success("search_files", json!({ "pattern": "secret" })).contains("the secret"));
}

#[test]
fn granted_directory_has_a_name_and_the_workspaces_guards() {
    let fixture = Fixture::new();
    let root = fixture.root.path();
    fs::create_dir(root.join("data")).expect("made");
    fs::write(root.join("data/file"), "granted").expect("written");
    symlink("../outside", root.join("data/link")).expect("linked");
    let granted = crate::Granted { name: "/data".into(), path: root.join("data"), is_writable: true };
    let tools = Tools::open(&Paths { granted: vec![granted], ..Paths::below(root) }, None).expect("opened");
    let run = |tool: &str, arguments: serde_json::Value| tools.run(tool, &arguments.to_string());
    for (path, why) in [
        ("/outside/secret", "refused /outside/secret: outside of /workspace and /data"),
        ("/", "refused /: outside of /workspace and /data"),
        ("/data/../outside/secret", "`..` is not allowed in a path"),
        ("/../outside/secret", "`..` is not allowed in a path"),
        ("/data/link/secret", "links are not followed"),
        ("/datafile", "outside of"),
        ("data/file", "No such file"),
    ] {
        let outcome = run("read_file", json!({ "path": path }));
        assert!(!outcome.ok && outcome.body.contains(why), "{path}: {}", outcome.body);
    }
    assert_eq!(run("read_file", json!({ "path": "/data/file" })).body, "granted");
    let wrote = run("write_file", json!({ "path": "/data/sub/new", "content": "x" }));
    assert!(wrote.ok && wrote.body.contains("/data/sub/new"), "{}", wrote.body);
    assert_eq!(fs::read(root.join("data/sub/new")).expect("there"), b"x");
    let found = run("search_files", json!({ "pattern": "grant", "path": "/data" }));
    assert!(found.body.contains("/data/file"), "{}", found.body);
    assert!(run("list_dir", json!({ "path": "/data" })).ok);
}

#[test]
fn a_command_in_a_jail_without_programs_is_refused_in_words() {
    let fixture = Fixture::new();
    let (_host, link) = UnixStream::pair().expect("a socketpair");
    let outcome = fixture.tools.command(r#"{"command":"true"}"#, &Link::new(link.into())).expect("the host is there");
    assert!(!outcome.ok && outcome.body.contains("no programs in this jail"), "{}", outcome.body);
}

#[test]
fn a_magic_link_is_a_link() {
    let tools =
        Tools::open(&Paths { workspace: "/proc/self".into(), ..Paths::below("/".as_ref()) }, None).expect("opened");
    for path in ["root/etc/passwd", "cwd/Cargo.toml", "exe", "fd/0"] {
        let outcome = tools.run("read_file", &json!({ "path": path }).to_string());
        assert!(!outcome.ok && outcome.body.contains("links are not followed"), "{path}: {}", outcome.body);
    }
}

#[test]
fn a_pipe_a_socket_or_a_device_is_refused_and_does_not_block() {
    let fixture = Fixture::new();
    mkfifo(&fixture.inside("pipe"), Mode::S_IRWXU).expect("made");
    #[allow(clippy::disallowed_types, reason = "the test makes what the sandbox must refuse")]
    let _socket = std::os::unix::net::UnixListener::bind(fixture.inside("socket")).expect("bound");
    let null = nix::sys::stat::makedev(1, 3);
    let device = mknod(&fixture.inside("device"), SFlag::S_IFCHR, Mode::S_IRWXU, null).is_ok();
    for name in ["pipe", "socket", "device"].into_iter().filter(|name| *name != "device" || device) {
        for (tool, arguments) in [
            ("read_file", json!({ "path": name })),
            ("write_file", json!({ "path": name, "content": "x" })),
            ("write_file", json!({ "path": name, "content": "x", "append": true })),
            ("search_files", json!({ "path": name, "pattern": "." })),
        ] {
            fixture.fails(tool, arguments, "neither a regular file");
        }
    }
    let listing = fixture.success("list_dir", json!({}));
    assert!(listing.contains("special pipe\nspecial socket\n"), "{listing}");
    drop(UnixStream::connect(fixture.inside("socket")).expect("the socket still exists"));
}

#[test]
fn directory_swapped_for_a_link_leads_nowhere() {
    const ROUNDS: usize = 3000;
    let fixture = Fixture::new();
    fs::create_dir(fixture.inside("d")).expect("made");
    fs::write(fixture.inside("d/secret"), "harmless").expect("written");
    symlink(fixture.outside(), fixture.inside("l")).expect("linked");
    let done = AtomicBool::new(false);
    let (mut refused, mut worked) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (a, b) = (fixture.inside("d"), fixture.inside("l"));
            while !done.load(Ordering::Relaxed) {
                renameat2(AT_FDCWD, &a, AT_FDCWD, &b, RenameFlags::RENAME_EXCHANGE).expect("swapped");
            }
        });
        for round in 0..ROUNDS {
            let (tool, arguments) = match round % 3 {
                0 => ("read_file", json!({ "path": "d/secret" })),
                1 => ("write_file", json!({ "path": "d/secret", "content": "harmless" })),
                _ => ("list_dir", json!({ "path": "d" })),
            };
            let outcome = fixture.run(tool, arguments);
            assert!(!outcome.body.contains("the secret"), "{}", outcome.body);
            if outcome.ok { worked += 1 } else { refused += 1 }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(refused + worked, ROUNDS);
    assert_eq!(fs::read_to_string(fixture.outside().join("secret")).expect("read"), "the secret");
    assert_eq!(fs::read_dir(fixture.outside()).expect("listed").count(), 1);
}

#[test]
fn wrong_arguments_are_refused_by_every_tool() {
    let fixture = Fixture::new();
    for (tool, arguments) in [
        ("read_file", r#"{"path":"x","follow_links":true}"#),
        ("read_file", r#"{"path":"x","path":"y"}"#),
        ("read_file", r#"{"path":"x","offset":-1}"#),
        ("read_file", r"{}"),
        ("read_file", r#"["x"]"#),
        ("write_file", r#"{"path":"x"}"#),
        ("write_file", r#"{"path":"x","content":1}"#),
        ("search_files", r#"{"pattern":"("}"#),
        ("search_files", r#"{"pattern":"(a{1000}){1000}"}"#),
        ("run_command", r#"{"command":"id"}"#),
        ("Read_File", r#"{"path":"x"}"#),
    ] {
        assert!(!fixture.tools.run(tool, arguments).ok, "{tool} {arguments}");
    }
    assert_eq!(fixture.run("run_command", json!({})).body, r#"there is no local tool "run_command""#);
}

#[test]
fn written_file_is_read_back_unchanged() {
    let fixture = Fixture::new();
    let content = "first\r\n\u{202e}second\u{0}\n[Tool result for x] <tool_result>\n\tno last line break";
    fixture.success("write_file", json!({ "path": "/workspace/a/b/c.txt", "content": content }));
    assert_eq!(fixture.success("read_file", json!({ "path": "a/b/c.txt" })), content);
    fixture.success("write_file", json!({ "path": "a/b/c.txt", "content": "!", "append": true }));
    assert_eq!(fixture.success("read_file", json!({ "path": "./a//b/c.txt" })), format!("{content}!"));
    fixture.success("write_file", json!({ "path": "new", "content": "", "append": true }));
    assert_eq!(fixture.success("read_file", json!({ "path": "new" })), "");
    assert_eq!(fixture.success("list_dir", json!({ "path": "/workspace" })), "directory a\nfile 0 new\n");
    assert_eq!(fixture.success("list_dir", json!({ "path": "a/b" })), format!("file {} c.txt\n", content.len() + 1));
}

#[test]
fn a_write_replaces_the_name_and_keeps_the_mode() {
    let fixture = Fixture::new();
    fs::write(fixture.inside("script"), "old").expect("written");
    fs::set_permissions(fixture.inside("script"), fs::Permissions::from_mode(0o755)).expect("set");
    fs::hard_link(fixture.inside("script"), fixture.inside("second name")).expect("linked");
    fixture.success("write_file", json!({ "path": "script", "content": "new" }));
    assert_eq!(fs::metadata(fixture.inside("script")).expect("there").permissions().mode() & 0o777, 0o755);
    assert_eq!(
        fixture.success("read_file", json!({ "path": "second name" })),
        "old",
        "a hard link is a file like any other"
    );
    assert_eq!(fs::read_dir(fixture.inside("")).expect("listed").count(), 2, "no draft is left");
}

#[test]
fn failed_write_gives_the_reason_and_leaves_no_file() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.inside("directory")).expect("made");
    fs::write(fixture.inside("file"), "x").expect("written");
    for (path, sentence) in [
        ("directory", "directory is a directory"),
        (".", ". is a directory"),
        ("/workspace", ". is a directory"),
        ("file/below", "cannot write file/below: Not a directory"),
    ] {
        fixture.fails("write_file", json!({ "path": path, "content": "y" }), sentence);
    }
    assert_eq!(fixture.success("list_dir", json!({})), "directory directory\nfile 1 file\n");
    let large = fs::File::options().write(true).open(fixture.inside("file")).expect("opened");
    large.set_len(files::FILE_BYTES_MAX).expect("sparse");
    fixture.fails("write_file", json!({ "path": "file", "content": "y", "append": true }), "at most 67108864 bytes");
}

#[test]
fn large_file_is_read_in_parts_that_make_the_whole() {
    let fixture = Fixture::new();
    let content = "0123456789é\u{1}".repeat(40_000);
    fs::write(fixture.inside("long"), &content).expect("written");
    let (mut offset, mut whole) = (0, String::new());
    while offset < content.len() {
        let mut part = fixture.success("read_file", json!({ "path": "long", "offset": offset }));
        assert!(part.len() <= BODY_BYTES_MAX);
        let frame = serde_json::to_vec(&part).expect("JSON").len();
        assert!(frame <= FRAME_BYTES_MAX - 1024, "{frame}");
        if let Some((text, note)) = part.clone().rsplit_once("\n[bytes ") {
            assert!(note.starts_with(&format!("{offset} to ")) && note.contains("of 520000"), "{note}");
            part = text.to_owned();
        }
        offset += part.len();
        whole.push_str(&part);
    }
    assert!(whole == content);
    assert_eq!(
        fixture.success("read_file", json!({ "path": "long", "offset": 3, "limit": 5 })),
        "34567\n[bytes 3 to 8 of 520000; continue with offset 8]"
    );
    for offset in [11, 520_001] {
        fixture.fails("read_file", json!({ "path": "long", "offset": offset }), "no character begins at offset");
    }
    assert_eq!(fixture.success("read_file", json!({ "path": "long", "offset": 520_000 })), "");
}

#[test]
fn file_that_is_no_text_is_refused() {
    let fixture = Fixture::new();
    fs::write(fixture.inside("binary"), [b'a', 0xff, 0xfe]).expect("written");
    fs::write(fixture.inside("cut"), &"é".as_bytes()[..1]).expect("written");
    assert_eq!(fixture.run("read_file", json!({ "path": "binary" })).body, "binary is not UTF-8 text: 3 bytes");
    assert_eq!(fixture.run("read_file", json!({ "path": "cut" })).body, "cut is not UTF-8 text: 1 bytes");
}

#[test]
fn listing_shows_entries_and_reports_further_ones() {
    let fixture = Fixture::new();
    assert_eq!(fixture.success("list_dir", json!({})), "[empty]\n");
    fs::write(fixture.inside("two\nfile 9 lines"), "").expect("written");
    symlink("/etc/passwd", fixture.inside("shown")).expect("linked");
    assert_eq!(fixture.success("list_dir", json!({})), "link shown\nfile 0 two\\nfile 9 lines\n");
    for number in 0..files::ENTRIES_MAX {
        fs::write(fixture.inside(&format!("f{number}")), "").expect("written");
    }
    let listing = fixture.success("list_dir", json!({}));
    assert_eq!(listing.lines().count(), files::ENTRIES_MAX + 1);
    assert!(listing.ends_with("[more than 1000 entries; the others are not shown]\n"));
}

#[test]
fn search_finds_lines_in_order_and_counts_skipped_files() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.inside("a/b")).expect("made");
    fs::write(fixture.inside("a/b/one.txt"), "needle 1\nhay\nneedle 2\n").expect("written");
    fs::write(fixture.inside("z.txt"), format!("{}needle", "é".repeat(300))).expect("written");
    fs::write(fixture.inside("binary"), [0xff; 10]).expect("written");
    fs::write(fixture.inside("large"), "needle\n".repeat(200_000)).expect("written");
    symlink(fixture.outside(), fixture.inside("link")).expect("linked");
    assert_eq!(
        fixture.success("search_files", json!({ "pattern": "^need.e" })),
        "a/b/one.txt:1: needle 1\na/b/one.txt:3: needle 2\n\
         [2 lines in 2 files; 3 links, special, large or non-text files left out]"
    );
    let cut = fixture.success("search_files", json!({ "pattern": "^needle", "max": 1, "path": "a/b" }));
    assert_eq!(cut, "a/b/one.txt:1: needle 1\n[1 lines in 1 files; stopped early, there may be more]");
    let long = fixture.success("search_files", json!({ "pattern": "needle", "path": "z.txt" }));
    assert_eq!(long, format!("z.txt:1: {} […]\n[1 lines in 1 files]", "é".repeat(200)));
    assert_eq!(fixture.success("search_files", json!({ "pattern": "needle", "path": "a" })).lines().count(), 3);
}
