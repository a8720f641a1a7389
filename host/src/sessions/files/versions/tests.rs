//! Tests of the kept versions of a workspace: their bounds, and an agent that owns the workspace.

use super::limits::{Limits, Reason, VERSIONS_OF_FILE_MAX};
use super::*;
use crate::registry::quota;
use crate::sessions::files::FilePath;
use ironclaw_contract::ids::{SessionId, TurnId};
use ironclaw_operator::DenialCode;
use ironclaw_state::home::{Home, SessionDirectories};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Files of a large workspace.
const MANY: usize = 10_000;

struct Scene {
    place: SessionDirectories,
    workspace: PathBuf,
    limits: Limits,
    quota: quota::Config,
    _home: TempDir,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let home = Home::create(&directory.path().join("home")).expect("a home");
        let place = home.session(SessionId::new());
        place.prepare(None).expect("made");
        let (limits, quota) = (Limits::default(), quota::Config::default());
        Self { workspace: place.workspace(), place, limits, quota, _home: directory }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.workspace.join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.at(name), content).expect("written");
    }

    /// Replaces a file, as a tool does.
    fn replace(&self, name: &str, content: &str) {
        self.write("draft.new", content);
        fs::rename(self.at("draft.new"), self.at(name)).expect("renamed");
    }

    fn run(&self, turn: Option<TurnId>) -> Run {
        let until = Instant::now() + Duration::from_secs(600);
        Run { limits: self.limits, until, ..Run::new(turn, 1, self.quota.clone()) }
    }

    /// Runs before a call of a new turn; returns the number of copies and the turn.
    fn take(&self) -> (usize, TurnId) {
        let turn = TurnId::new();
        (take(&self.place, &self.run(Some(turn))).expect("taken"), turn)
    }

    fn history(&self) -> History {
        history(&self.place, &FilePath::parse("").expect("the workspace")).expect("read")
    }

    fn versions(&self) -> Vec<(String, &'static str)> {
        self.history().versions.into_iter().map(|kept| (kept.path, kept.why.name())).collect()
    }

    fn left_out(&self) -> Vec<(String, Reason)> {
        let mut left: Vec<_> = self.history().report.left_out.into_iter().map(|left| (left.shown, left.why)).collect();
        left.sort();
        left
    }

    fn restore(&self, path: &str, version: Option<u64>, to: Option<&str>) -> Result<Option<u64>, DenialCode> {
        let parse = |path| FilePath::parse(path).expect("a path");
        let wanted = Wanted { path: parse(path), version, to: to.map(parse) };
        let restoring =
            restoring(&self.place, None, &self.run(None), wanted).map_err(|denied| denied.refusal().code)?;
        let replaced = restoring.replaced;
        restoring.place(&self.place, &self.run(None)).expect("placed");
        Ok(replaced)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).expect("a text")
    }

    /// Returns the copies on the disk.
    fn copies(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.place.versions()).expect("a directory").flatten();
        entries.map(|entry| entry.path()).filter(|path| is_copy(path)).collect()
    }
}

fn is_copy(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.len() == 64)
}

#[test]
fn overwritten_changed_and_deleted_files_are_kept() {
    let scene = Scene::new();
    fs::create_dir(scene.at("d")).expect("made");
    for name in ["a", "b", "d/c", "same"] {
        scene.write(name, format!("first of {name}"));
    }
    let (copied, turn) = scene.take();
    assert_eq!((copied, scene.versions()), (4, vec![]), "the workspace has all of it");
    scene.replace("a", "second");
    scene.write("b", "second of b");
    fs::remove_dir_all(scene.at("d")).expect("removed");
    let expected = [("a", "overwritten"), ("b", "changed"), ("d/c", "deleted")];
    let expected: Vec<_> = expected.map(|(path, why)| (path.to_owned(), why)).into();
    assert_eq!(scene.versions(), expected, "before the next run");
    let found = scene.history();
    assert!(found.versions.iter().all(|kept| kept.turn == Some(turn)));
    let (copied, _) = scene.take();
    assert_eq!(copied, 2, "only the new contents");
    let mut after = scene.versions();
    after.sort();
    assert_eq!(after, expected, "after it");
    assert!(scene.history().versions.iter().all(|kept| kept.turn == Some(turn)), "not the later turn");

    let only = history(&scene.place, &FilePath::parse("d").expect("a path")).expect("read").versions;
    assert_eq!(only.len(), 1);
    let versions = scene.place.versions();
    assert_eq!(fs::metadata(&versions).expect("there").permissions().mode() & 0o777, 0o700);
    assert!(scene.copies().iter().all(|copy| fs::metadata(copy).expect("there").mode() & 0o777 == 0o600));
}

#[test]
fn restore_brings_back_the_bytes_and_can_be_undone() {
    let scene = Scene::new();
    scene.write("a", b"\0\xffbytes");
    scene.take();
    scene.replace("a", "by the agent");
    let replaced = scene.restore("a", None, None).expect("restored");
    assert_eq!(fs::read(scene.at("a")).expect("there"), b"\0\xffbytes");
    assert_eq!(scene.restore("a", None, None).expect("undone"), Some(replaced.expect("it replaced a file") + 1));
    assert_eq!(scene.read("a"), "by the agent");
    fs::remove_file(scene.at("a")).expect("removed");
    assert_eq!(scene.restore("a", None, None), Ok(None));
    assert_eq!(scene.read("a"), "by the agent");
    assert_eq!(scene.restore("a", Some(1), Some("d/old")), Ok(None));
    assert_eq!(fs::read(scene.at("d/old")).expect("there"), b"\0\xffbytes");
    scene.write("other", "own");
    let replaced = scene.restore("a", Some(1), Some("other")).expect("restored").expect("it replaced a file");
    scene.restore("other", Some(replaced), None).expect("restored");
    assert_eq!(scene.read("other"), "own");
}

#[test]
fn unknown_version_and_place_without_a_copy_are_refused() {
    let mut scene = Scene::new();
    assert_eq!(scene.restore("a", None, None), Err(DenialCode::FileVersionUnknown), "no run yet");
    scene.write("a", "first");
    scene.write("b", "longer, so it is copied after the other");
    scene.take();
    assert_eq!(scene.restore("a", None, None), Err(DenialCode::FileVersionUnknown), "the workspace has it");
    assert_eq!(scene.restore("b", Some(1), None), Err(DenialCode::FileVersionUnknown), "of another file");
    assert_eq!(scene.restore("a", Some(9), None), Err(DenialCode::FileVersionUnknown));
    scene.replace("a", "a much longer text");
    scene.limits.file_bytes = 8;
    assert_eq!(scene.restore("a", Some(1), None), Err(DenialCode::FileNotKept));
    assert_eq!(scene.read("a"), "a much longer text");
    assert_eq!(scene.restore("a", Some(1), Some("c")), Ok(None));
    fs::remove_file(scene.at("a")).expect("removed");
    symlink("/etc/passwd", scene.at("a")).expect("linked");
    assert_eq!(scene.restore("a", Some(1), None), Err(DenialCode::FileNotKept), "a link is in its place");
    fs::remove_file(scene.at("a")).expect("removed");
    for copy in scene.copies() {
        fs::write(copy, "other").expect("damaged");
    }
    assert_eq!(scene.restore("a", Some(1), None), Err(DenialCode::FileVersionLost));
}

#[test]
fn large_unchanged_workspace_costs_no_copies() {
    let scene = Scene::new();
    for n in 0..MANY {
        scene.write(&format!("f{n}"), n.to_string());
    }
    assert_eq!(scene.take().0, MANY);
    let index = || fs::metadata(scene.place.versions().join("index.json")).expect("there");
    let before = (index().ino(), index().mtime_nsec());
    assert_eq!(scene.take().0, 0);
    assert_eq!((index().ino(), index().mtime_nsec()), before, "the list is not written again");
    scene.replace("f7", "new");
    assert_eq!(scene.take().0, 1);
    assert_eq!(scene.copies().len(), MANY + 1);
}

#[test]
fn touched_and_equal_files_take_no_space() {
    let scene = Scene::new();
    scene.write("a", "same");
    scene.write("b", "same");
    scene.take();
    scene.replace("a", "same");
    assert_eq!((scene.take().0, scene.copies().len()), (0, 1));
    assert_eq!(scene.versions(), []);
}

#[test]
fn links_pipes_and_closed_or_odd_names_are_left_out() {
    use std::os::unix::ffi::OsStrExt;
    let scene = Scene::new();
    let secret = scene.place.path().join("secret");
    fs::write(&secret, "secret").expect("written");
    symlink(&secret, scene.at("link")).expect("linked");
    symlink(scene.place.path(), scene.at("up")).expect("linked");
    nix::unistd::mkfifo(&scene.at("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("made");
    fs::write(scene.workspace.join(std::ffi::OsStr::from_bytes(b"a\xff")), "x").expect("written");
    let deep = "d/".repeat(40);
    fs::create_dir_all(scene.at(&deep)).expect("made");
    scene.write("plain", "x");
    let (copied, _) = scene.take();
    assert_eq!(copied, 1);
    let left = scene.left_out();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left.iter().all(|(_, why)| *why == Reason::Name), "{left:?}");
    assert!(left.iter().all(|(shown, _)| !shown.contains('\u{ff}')));
    assert_eq!(scene.copies().len(), 1, "no link was followed");
}

#[test]
fn file_that_the_agent_closed_keeps_its_former_copy() {
    if nix::unistd::geteuid().is_root() {
        // Permissions keep no root out.
        return;
    }
    let scene = Scene::new();
    fs::create_dir(scene.at("d")).expect("made");
    scene.write("d/a", "first");
    scene.write("b", "first");
    scene.take();
    let close = |name: &str, mode| fs::set_permissions(scene.at(name), PermissionsExt::from_mode(mode)).expect("set");
    scene.write("b", "second");
    close("b", 0);
    close("d", 0);
    scene.take();
    let left = scene.left_out();
    assert_eq!(left, [("b".to_owned(), Reason::Unreadable), ("d".to_owned(), Reason::Unreadable)]);
    assert_eq!(scene.versions(), [("b".to_owned(), "changed")], "a file in a closed directory is not deleted");
    assert_eq!(scene.restore("d/a", None, None), Err(DenialCode::FileNotKept));
    close("d", 0o700);
    close("b", 0o600);
    fs::remove_file(scene.at("d/a")).expect("removed");
    scene.restore("d/a", None, None).expect("restored");
    assert_eq!(scene.read("d/a"), "first");
}

#[test]
fn large_file_is_left_out_and_small_ones_are_kept() {
    let mut scene = Scene::new();
    scene.limits.file_bytes = 10;
    scene.write("large", "0123456789x");
    scene.write("small", "0123456789");
    assert_eq!(scene.take().0, 1);
    assert_eq!(scene.left_out(), [("large".to_owned(), Reason::FileBytes)]);
}

#[test]
fn space_of_a_session_is_bounded_and_old_versions_go_first() {
    let mut scene = Scene::new();
    scene.limits.session_bytes = 3 * 4096;
    scene.write("a", "0");
    scene.write("b", "b");
    scene.take();
    for n in 1..4 {
        scene.replace("a", &n.to_string());
        scene.take();
        assert!(scene.copies().len() <= 3, "{n}");
    }
    assert_eq!(scene.versions().len(), 1, "the newest of the old ones");
    scene.restore("a", None, None).expect("restored");
    assert_eq!(scene.read("a"), "2");
    scene.write("c", vec![b'c'; 4096]);
    scene.write("d", vec![b'd'; 8192]);
    scene.take();
    assert_eq!(scene.left_out(), [("d".to_owned(), Reason::SessionBytes)], "copies of present files are not evicted");
}

#[test]
fn number_of_versions_is_bounded() {
    let mut scene = Scene::new();
    scene.write("a", "0");
    scene.take();
    for n in 1..VERSIONS_OF_FILE_MAX + 5 {
        scene.replace("a", &n.to_string());
        scene.take();
    }
    assert_eq!(scene.versions().len(), VERSIONS_OF_FILE_MAX);
    scene.limits.versions = 3;
    scene.write("b", "b");
    scene.write("c", "c");
    scene.write("d", "d");
    scene.take();
    assert_eq!((scene.versions().len(), scene.copies().len()), (0, 3));
    assert_eq!(scene.left_out().len(), 1);
    assert_eq!(scene.left_out()[0].1, Reason::Versions);
}

#[test]
fn copies_never_take_a_session_over_its_quota() {
    let mut scene = Scene::new();
    scene.quota = quota::Config { workspace_bytes: 400_000, ..quota::Config::default() };
    for n in 0..40 {
        scene.write(&format!("f{n}"), vec![n; 4096]);
    }
    scene.take();
    let over = crate::registry::quota::workspace::exceeded_bound(scene.place.path(), &scene.quota).expect("measured");
    assert_eq!(over, None);
    let copies = scene.copies().len();
    assert!((1..40).contains(&copies), "{copies}");
    scene.write("large", vec![1; 160_000]);
    scene.take();
    assert!(scene.copies().len() < copies, "the copies make room for the agent");
    assert_eq!(
        crate::registry::quota::workspace::exceeded_bound(scene.place.path(), &scene.quota).expect("measured"),
        None
    );
}

#[test]
fn run_without_time_left_is_reported_and_deletes_nothing() {
    let scene = Scene::new();
    scene.write("a", "first");
    scene.take();
    fs::remove_file(scene.at("a")).expect("removed");
    let late = Run { until: Instant::now(), ..scene.run(None) };
    take(&scene.place, &late).expect("taken");
    assert_eq!(scene.left_out()[0].1, Reason::Time);
    scene.restore("a", None, None).expect("restored");
    assert_eq!(scene.read("a"), "first");
}

#[test]
fn failed_run_is_reported_and_harms_no_file() {
    let scene = Scene::new();
    scene.write("a", "first");
    scene.take();
    fs::write(scene.place.versions().join("index.json"), "{").expect("damaged");
    take(&scene.place, &scene.run(None)).expect_err("the list is damaged");
    let report = scene.place.versions().join("report.json");
    assert!(fs::read_to_string(report).expect("there").contains("damaged"));
    assert_eq!(scene.read("a"), "first");
    fs::remove_dir_all(scene.place.path()).expect("removed");
    assert_eq!(take(&scene.place, &scene.run(None)).expect("nothing to copy"), 0, "a removed session");
    assert!(!scene.place.path().exists());
}

#[test]
fn copy_without_a_list_is_removed_by_the_next_run() {
    let scene = Scene::new();
    scene.write("a", "first");
    scene.take();
    let left = scene.place.versions().join("0".repeat(64));
    fs::write(&left, "the host was killed").expect("written");
    fs::write(scene.place.versions().join("copy.new"), "half of a copy").expect("written");
    scene.replace("a", "second");
    scene.take();
    assert!(!left.exists());
    assert_eq!(scene.copies().len(), 2);
    assert!(!scene.place.versions().join("copy.new").exists());
}
