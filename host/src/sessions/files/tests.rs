//! Tests of the files of a workspace against an agent that owns the workspace.

use super::*;
use ironclaw_contract::ids::SessionId;
use ironclaw_state::home::Home;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

/// Rounds of the race between the host and an agent that swaps a directory for a link.
const RACES: u32 = 2000;

struct Scene {
    place: SessionDirectories,
    workspace: PathBuf,
    outside: TempDir,
    _home: TempDir,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let home = Home::create(&directory.path().join("home")).expect("a home");
        let place = home.session(SessionId::new());
        place.prepare(None).expect("made");
        let outside = tempfile::tempdir().expect("another directory");
        fs::write(outside.path().join("secret"), "the secret").expect("written");
        Self { workspace: place.workspace(), place, outside, _home: directory }
    }

    fn files(&self) -> Files {
        Files::open(&self.place, None).expect("opened").expect("it has a workspace")
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, DenialCode> {
        let (mut file, bytes) = self.files().read(&parse(path)?).map_err(code)?;
        let mut content = Vec::new();
        file.read_to_end(&mut content).expect("readable");
        assert_eq!(content.len() as u64, bytes);
        Ok(content)
    }

    fn put(&self, path: &str, content: &str, replaces: bool) -> Result<(), DenialCode> {
        self.put_within(&quota::Config::default(), path, content, replaces)
    }

    fn put_within(&self, quota: &quota::Config, path: &str, content: &str, replaces: bool) -> Result<(), DenialCode> {
        let path = FilePath::parse_new(path).map_err(|refusal| refusal.code)?;
        let draft = self.files().draft(&self.place, quota, path, content.as_bytes(), replaces).map_err(code)?;
        draft.place().map_err(code)
    }

    fn remove(&self, path: &str) -> Result<(), DenialCode> {
        self.files().removal(parse(path)?).and_then(Removal::remove).map_err(code)
    }

    fn list(&self, path: &str, levels: usize) -> Result<Vec<(String, &'static str)>, DenialCode> {
        let (entries, _) = self.files().list(&parse(path)?, levels).map_err(code)?;
        Ok(entries.iter().map(|entry| (entry.path.display().to_string(), entry.kind.name())).collect())
    }
}

fn parse(path: &str) -> Result<FilePath, DenialCode> {
    FilePath::parse(path).map_err(|refusal| refusal.code)
}

fn code(error: Error) -> DenialCode {
    error.refusal().code
}

fn make_pipe(path: &Path) {
    nix::unistd::mkfifo(path, Mode::S_IRWXU).expect("made");
}

#[test]
fn links_out_of_the_workspace_are_never_followed() {
    let scene = Scene::new();
    let at = |name: &str| scene.workspace.join(name);
    symlink("/etc/passwd", at("passwd")).expect("linked");
    symlink(scene.outside.path(), at("out")).expect("linked");
    fs::create_dir(at("d")).expect("made");
    symlink(scene.outside.path(), at("d/out")).expect("linked");
    symlink("d", at("inner")).expect("linked");
    fs::write(at("d/own"), "x").expect("written");
    for path in ["passwd", "out/secret", "d/out/secret", "inner/own", "out"] {
        assert_eq!(scene.read(path), Err(DenialCode::FileUnfit), "{path}");
        assert_eq!(scene.put(path, "y", true), Err(DenialCode::FileUnfit), "{path}");
        assert_eq!(scene.remove(path), Err(DenialCode::FileUnfit), "{path}");
    }
    for path in ["out", "d/out", "inner", "passwd"] {
        assert_eq!(scene.list(path, 1), Err(DenialCode::FileUnfit), "{path}");
    }
    assert_eq!(scene.put("out/new", "y", false), Err(DenialCode::FileUnfit));
    assert_eq!(scene.put("d/out/a/b", "y", false), Err(DenialCode::FileUnfit));
    assert_eq!(fs::read_dir(scene.outside.path()).expect("readable").count(), 1, "no file was made outside");
    let listed = scene.list("", 8).expect("listed");
    let expected = [
        ("d", "directory"),
        ("d/out", "link"),
        ("d/own", "file"),
        ("inner", "link"),
        ("out", "link"),
        ("passwd", "link"),
    ];
    assert_eq!(listed, expected.map(|(path, kind)| (path.to_owned(), kind)), "a link is listed and not entered");
}

#[test]
fn pipes_and_sockets_are_listed_and_never_opened() {
    let scene = Scene::new();
    make_pipe(&scene.workspace.join("pipe"));
    let _listener = std::os::unix::net::UnixListener::bind(scene.workspace.join("socket")).expect("bound");
    for path in ["pipe", "socket"] {
        assert_eq!(scene.read(path), Err(DenialCode::FileUnfit), "{path}");
        assert_eq!(scene.put(path, "x", true), Err(DenialCode::FileUnfit), "{path}");
        assert_eq!(scene.remove(path), Err(DenialCode::FileUnfit), "{path}");
    }
    // A writer of the pipe would notice a reader.
    let writer = fcntl::open(&scene.workspace.join("pipe"), OFlag::O_WRONLY | OFlag::O_NONBLOCK, Mode::empty());
    assert_eq!(writer.map(drop), Err(Errno::ENXIO));
    let expected = [("pipe".to_owned(), "special"), ("socket".to_owned(), "special")];
    assert_eq!(scene.list("", 1).expect("listed"), expected);
}

#[test]
fn paths_that_lead_to_no_file_get_their_codes() {
    let scene = Scene::new();
    scene.put("d/file", "x", false).expect("put");
    assert_eq!(scene.read("none"), Err(DenialCode::FileUnknown));
    assert_eq!(scene.remove("d/none"), Err(DenialCode::FileUnknown));
    assert_eq!(scene.read("d/file/x"), Err(DenialCode::FileUnfit));
    for path in ["d", "", "."] {
        assert_eq!(scene.read(path), Err(DenialCode::FileUnfit), "{path:?}");
        assert_eq!(scene.remove(path), Err(DenialCode::FileUnfit), "{path:?}");
    }
    assert_eq!(scene.put("d", "x", true), Err(DenialCode::FileUnfit));
    assert_eq!(scene.put("d/file/x", "x", true), Err(DenialCode::FileUnfit));
    assert_eq!(scene.list("d/file", 1), Err(DenialCode::FileUnfit));
    assert_eq!(scene.list("none", 1), Err(DenialCode::FileUnknown));
    for path in ["../x", "/x", "d/../../x"] {
        assert_eq!(scene.put(path, "x", true), Err(DenialCode::FilePath), "{path}");
    }
}

#[test]
fn file_is_replaced_only_on_request_and_as_a_whole() {
    let scene = Scene::new();
    scene.put("a/b/notes.txt", "one", false).expect("put");
    assert_eq!(scene.put("a/b/notes.txt", "two", false), Err(DenialCode::FileExists));
    assert_eq!(scene.read("a/b/notes.txt").as_deref(), Ok(b"one".as_slice()));
    scene.put("a/b/notes.txt", "three", true).expect("replaced");
    assert_eq!(scene.read("a/b/notes.txt").as_deref(), Ok(b"three".as_slice()));
    let found = fs::metadata(scene.workspace.join("a/b/notes.txt")).expect("there");
    assert_eq!(found.mode() & 0o7777, 0o600);
    // A place that was taken after the check is not overwritten, and no draft remains.
    let path = FilePath::parse_new("late").expect("a path");
    let draft = scene.files().draft(&scene.place, &quota::Config::default(), path, b"mine", false).expect("drafted");
    fs::write(scene.workspace.join("late"), "the agent's").expect("written");
    assert_eq!(draft.place().map_err(code), Err(DenialCode::FileExists));
    assert_eq!(scene.read("late").as_deref(), Ok(b"the agent's".as_slice()));
    assert!(!scene.place.path().join(DRAFT).exists());
    // A killed host left a draft.
    fs::write(scene.place.path().join(DRAFT), "half").expect("written");
    scene.put("fresh", "whole", false).expect("put");
    assert_eq!(scene.read("fresh").as_deref(), Ok(b"whole".as_slice()));
    scene.remove("fresh").expect("removed");
    assert_eq!(scene.read("fresh"), Err(DenialCode::FileUnknown));
}

#[test]
fn file_over_a_bound_or_the_quota_is_refused() {
    let scene = Scene::new();
    File::create(scene.workspace.join("big")).expect("made").set_len(FILE_GET_BYTES_MAX + 1).expect("sparse");
    assert_eq!(scene.read("big"), Err(DenialCode::FileTooLarge));
    let removal = scene.files().removal(parse("big").expect("a path")).expect("found");
    assert_eq!((removal.bytes, removal.digest), (FILE_GET_BYTES_MAX + 1, None));
    removal.remove().expect("removed");
    let bytes = quota::Config { workspace_bytes: 64 * 1024, ..quota::Config::default() };
    assert_eq!(scene.put_within(&bytes, "a", &"x".repeat(64 * 1024), false), Err(DenialCode::WorkspaceFull));
    scene.put_within(&bytes, "a", &"x".repeat(16 * 1024), false).expect("there is room");
    // The directories of both queues and the workspace count too.
    let files = quota::Config { workspace_files: 5, ..quota::Config::default() };
    assert_eq!(scene.put_within(&files, "d/e/b", "x", false), Err(DenialCode::WorkspaceFull));
    scene.put_within(&files, "b", "x", false).expect("there is room for one");
    assert_eq!(scene.put_within(&files, "c", "x", false), Err(DenialCode::WorkspaceFull));
    assert!(!scene.workspace.join("d").exists(), "a refused file leaves no directory");
}

#[test]
fn hard_link_to_a_file_of_another_user_is_refused() {
    let scene = Scene::new();
    scene.put("one", "x", false).expect("put");
    fs::hard_link(scene.workspace.join("one"), scene.workspace.join("two")).expect("linked");
    assert_eq!(scene.read("two").as_deref(), Ok(b"x".as_slice()), "the agent's own file may have two names");
    let me = nix::unistd::geteuid().as_raw();
    for (owner, expected) in [(me, None), (me + 1, Some(DenialCode::FileUnfit))] {
        let files = Files::open(&scene.place, Some(owner)).expect("opened").expect("a workspace");
        assert_eq!(files.read(&parse("two").expect("a path")).map(drop).map_err(code).err(), expected);
    }
}

#[test]
fn list_is_bounded_in_entries_and_levels() {
    let scene = Scene::new();
    fs::create_dir_all(scene.workspace.join("a/b/c")).expect("made");
    assert_eq!(scene.list("", 2).expect("listed").len(), 2);
    assert_eq!(scene.list("a", 1).expect("listed"), [("a/b".to_owned(), "directory")]);
    fs::write(scene.workspace.join(OsStr::from_bytes(b"not-\xff-text")), "").expect("written");
    assert_eq!(scene.list("", 1).expect("listed").len(), 2);
    for n in 0..ENTRIES_MAX {
        fs::write(scene.workspace.join(format!("a/b/{n}")), "").expect("written");
    }
    let (entries, more) = scene.files().list(&parse("").expect("a path"), 8).expect("listed");
    assert_eq!((entries.len(), more), (ENTRIES_MAX, true));
}

#[test]
fn directory_swapped_for_a_link_in_a_race_leads_nowhere() {
    let scene = Scene::new();
    let (inside, aside) = (scene.workspace.join("d"), scene.workspace.join("aside"));
    fs::create_dir(&inside).expect("made");
    fs::write(inside.join("secret"), "the own one").expect("written");
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                // The agent takes the directory away, and puts a link in its place for a moment. Each step may meet the host.
                let _ = fs::rename(&inside, &aside);
                let _ = symlink(scene.outside.path(), &inside);
                let _ = fs::remove_file(&inside);
                if aside.exists() {
                    let _ = fs::remove_dir_all(&inside);
                    let _ = fs::rename(&aside, &inside);
                }
            }
        });
        let mut random = fastrand::Rng::with_seed(14);
        for _ in 0..RACES {
            // Each may be refused, because the directory may be away.
            match random.usize(..4) {
                0 => drop(scene.read("d/secret").map(|content| assert_eq!(content, b"the own one"))),
                1 => drop(scene.put("d/new", "x", true)),
                2 => drop(scene.remove("d/new")),
                _ => drop(scene.list("d", 1).map(|found| assert!(found.len() <= 2))),
            }
        }
        ends.store(true, Ordering::Relaxed);
    });
    if aside.exists() {
        // A file that the host put while the directory was away is in a new one.
        let _ = fs::remove_dir_all(&inside);
        fs::rename(&aside, &inside).expect("the directory is back");
    }
    assert_eq!(scene.read("d/secret").expect("readable after the race"), b"the own one");
    scene.put("d/new", "x", true).expect("writable after the race");
    let outside: Vec<_> = fs::read_dir(scene.outside.path()).expect("readable").flatten().collect();
    assert_eq!(outside.len(), 1, "no file was made or removed outside");
    assert_eq!(fs::read(scene.outside.path().join("secret")).expect("there"), b"the secret");
}
