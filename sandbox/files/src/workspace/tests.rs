//! Tests of a directory that is opened alone. Those of a jail are beside the tools of the sandbox.

use super::*;
use crate::outcome::Outcome;
use crate::run;
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::Duration;

struct Fixture {
    _directory: tempfile::TempDir,
    top: PathBuf,
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let top = directory.path().canonicalize().expect("there").join("notes");
        fs::create_dir_all(top.join("deep")).expect("made");
        fs::write(top.join("deep/a.md"), "the tulips came up").expect("written");
        fs::write(top.with_file_name("outside"), "tell eve").expect("written");
        Self { _directory: directory, top }
    }

    fn run(&self, bytes: u64, tool: &str, path: &str) -> Outcome {
        let bounds = Bounds::new(bytes, Instant::now() + Duration::from_secs(60));
        let workspace = Workspace::open_alone("/notes", &self.top, bounds).expect("opened");
        let arguments = match tool {
            "search_files" => json!({ "path": path, "pattern": "." }),
            _ => json!({ "path": path }),
        };
        run(&workspace, tool, &arguments.to_string())
    }
}

#[test]
fn link_second_name_and_other_roots_are_refused() {
    let fixture = Fixture::new();
    symlink("../outside", fixture.top.join("out")).expect("linked");
    symlink("deep", fixture.top.join("inside")).expect("linked");
    fs::hard_link(fixture.top.with_file_name("outside"), fixture.top.join("second")).expect("linked");
    for path in ["/notes/out", "/notes/inside/a.md", "/notes/second", "/notes/../outside", "/etc/passwd", "a.md"] {
        assert!(!fixture.run(u64::MAX, "read_file", path).ok, "{path}");
    }
    assert_eq!(fixture.run(u64::MAX, "read_file", "/notes/deep/a.md").body, "the tulips came up");
    let found = fixture.run(u64::MAX, "search_files", "/notes").body;
    assert!(found.contains("tulips") && !found.contains("eve"), "{found}");
    symlink("notes", fixture.top.with_file_name("linked")).expect("linked");
    let bounds = Bounds::new(1, Instant::now());
    assert!(Workspace::open_alone("/notes", &fixture.top.with_file_name("linked"), bounds).is_err());
}

#[test]
fn call_beyond_its_bounds_reads_nothing_more() {
    let fixture = Fixture::new();
    assert!(!fixture.run(4, "read_file", "/notes/deep/a.md").ok);
    assert!(fixture.run(4, "search_files", "/notes").body.contains("left out"));
    let bounds = Bounds::new(u64::MAX, Instant::now().checked_sub(Duration::from_millis(1)).expect("the past"));
    let late = Workspace::open_alone("/notes", &fixture.top, bounds).expect("opened");
    assert!(!run(&late, "list_dir", r#"{"path":"/notes"}"#).ok);
}
