//! Tests that a layer refuses forbidden files, and that its digest covers its whole content.

use super::*;
use ironclaw_contract::ids::AgentId;
use nix::sys::stat::Mode;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

/// A directory with fetched files, and a home.
struct Fetched {
    directory: tempfile::TempDir,
    place: Place,
}

impl Fetched {
    fn new(place: Place) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(directory.path().join("root")).expect("made");
        Self { directory, place }
    }

    fn path(&self, path: &str) -> PathBuf {
        let path = self.directory.path().join("root").join(path);
        fs::create_dir_all(path.parent().expect("it is below the root")).expect("made");
        path
    }

    fn file(&self, path: &str, content: &str, mode: u32) -> &Self {
        let path = self.path(path);
        fs::write(&path, content).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
        self
    }

    fn link(&self, path: &str, target: &str) -> &Self {
        symlink(target, self.path(path)).expect("linked");
        self
    }

    fn source(&self) -> Source {
        Source { root: self.directory.path().join("root"), place: self.place, name: "evil=1".to_owned() }
    }

    fn build(&self, config: &Config) -> Result<(Built, PathBuf), Error> {
        build_all(self.directory.path(), config, &[self.source()])
    }

    fn refusal(&self) -> String {
        match self.build(&Config::default()) {
            Err(Error::Refused(refusal)) => refusal.message,
            other => panic!("not refused: {other:?}"),
        }
    }
}

fn build_all(directory: &Path, config: &Config, sources: &[Source]) -> Result<(Built, PathBuf), Error> {
    let path = directory.join("home");
    DirBuilder::new().recursive(true).mode(0o700).create(&path).expect("made");
    let home = Home::create(&path).expect("a home");
    build_for(&LayerOwner::Agent(AgentId::new()), &home, config, sources, directory)
}

fn build_for(
    owner: &LayerOwner,
    home: &Home,
    config: &Config,
    sources: &[Source],
    directory: &Path,
) -> Result<(Built, PathBuf), Error> {
    discard(&directory.join("layer")).expect("gone");
    make_private(home.layers_of(owner).parent().expect("it is in the home")).expect("made");
    let built = build(home, config, owner, sources, &directory.join("layer"))?;
    let place = home.layer(owner, &built.digest);
    Ok((built, place))
}

#[test]
fn program_of_a_server_is_laid_behind_that_of_the_machine() {
    let fetched = Fetched::new(Place::Root);
    fetched.file("usr/local/bin/sh", "of the package", 0o755).file("usr/local/bin/papers", "x", 0o755);
    assert!(fetched.refusal().contains("/usr/bin/sh"), "the commands of an agent are never replaced");
    let path = fetched.directory.path().join("server");
    DirBuilder::new().mode(0o700).create(&path).expect("made");
    let (home, owner) = (Home::create(&path).expect("a home"), LayerOwner::Server("papers".to_owned()));
    let build = || build_for(&owner, &home, &Config::default(), &[fetched.source()], fetched.directory.path());
    let (built, place) = build().expect("a layer");
    assert_eq!(built.behind, ["/usr/local/behind/sh"]);
    let kept = fs::read_to_string(place.join("usr/local/behind/sh")).expect("the program of the package");
    assert_eq!(kept, "of the package");
    assert!(place.join("usr/local/bin/papers").exists() && !place.join("usr/local/bin/sh").exists());
    // A library has no place behind, because the loader finds it by its name alone.
    fetched.file("usr/lib64/ld-linux-x86-64.so.2", "x", 0o755);
    assert!(build().is_err());
}

/// Returns the agent whose layer is at `place`.
fn agent_of(place: &Path) -> LayerOwner {
    let name = place.ancestors().nth(2).and_then(Path::file_name).and_then(|name| name.to_str());
    LayerOwner::Agent(name.and_then(|name| name.parse().ok()).expect("an agent"))
}

impl Drop for Fetched {
    fn drop(&mut self) {
        // `TempDir` cannot remove read-only directories.
        let _ = discard(&self.directory.path().join("home"));
        let _ = discard(&self.directory.path().join("layer"));
    }
}

#[test]
fn a_file_that_is_set_uid_or_set_gid_is_refused_by_its_name() {
    for (mode, place, path) in [
        (0o4755, Place::Root, "usr/bin/su"),
        (0o2755, Place::Root, "bin/su"),
        (0o6555, Place::Prefix, "bin/su"),
        (0o4644, Place::Root, "etc/su"),
    ] {
        let fetched = Fetched::new(place);
        fetched.file(path, "x", mode);
        assert_eq!(fetched.refusal(), format!("evil=1 brings {path:?}, which is set-uid or set-gid"));
    }
    let fetched = Fetched::new(Place::Root);
    fetched.file("usr/share/x/y", "x", 0o644);
    fs::set_permissions(fetched.path("usr/share/x"), fs::Permissions::from_mode(0o2755)).expect("set");
    assert!(fetched.refusal().contains("\"usr/share/x\", which is set-uid or set-gid"));
}

#[test]
fn a_pipe_a_socket_and_a_device_are_refused() {
    let fetched = Fetched::new(Place::Root);
    nix::unistd::mkfifo(&fetched.path("usr/lib/pipe"), Mode::S_IRWXU).expect("made");
    assert_eq!(fetched.refusal(), "evil=1 brings \"usr/lib/pipe\", which is a pipe");
    let fetched = Fetched::new(Place::Prefix);
    let _listener = UnixListener::bind(fetched.path("lib/socket")).expect("bound");
    assert_eq!(fetched.refusal(), "evil=1 brings \"lib/socket\", which is a socket");
    if nix::unistd::geteuid().is_root() {
        for (kind, name) in [(nix::sys::stat::SFlag::S_IFCHR, "char"), (nix::sys::stat::SFlag::S_IFBLK, "block")] {
            let fetched = Fetched::new(Place::Root);
            let made = nix::sys::stat::mknod(&fetched.path(&format!("usr/{name}")), kind, Mode::S_IRWXU, 0x0103);
            // In some containers not even root can create one.
            if made.is_ok() {
                assert!(fetched.refusal().ends_with("which is a device"));
            }
        }
    }
}

#[test]
fn a_link_that_leads_out_is_refused_by_its_name_and_target() {
    for target in [
        "/etc/passwd",
        "/",
        "/usr/../etc/passwd",
        "../../etc/passwd",
        "../..",
        "/proc/self/root",
        "../share/../../etc",
        "/usr/share/../../etc",
        "/home",
        "/tmp/x",
        "/usrx/bin",
        "over/../../../../etc",
        "elsewhere/../x",
        "../lib/none/../../../x",
        "/run",
        "/work",
        "//etc",
        "/./etc",
        "/lib/../etc/x",
    ] {
        let fetched = Fetched::new(Place::Root);
        fetched.file("usr/share/x", "x", 0o644).link("usr/bin/over", "../share").link("usr/bin/evil", target);
        let refusal = fetched.refusal();
        assert_eq!(refusal, format!("\"usr/bin/evil\" is a link to {target:?}, which leads out of /usr"));
    }
    let fetched = Fetched::new(Place::Prefix);
    fetched.link("lib/node_modules/x", "../../../../../home");
    assert!(fetched.refusal().contains("leads out of /usr"));
}

#[test]
fn inner_link_is_kept_unchanged() {
    let fetched = Fetched::new(Place::Root);
    let targets = [
        "../share/x",
        "/usr/share/x",
        "x",
        "/usr/bin/nowhere",
        "/lib/x",
        "../../lib/x",
        "../../usr/share/x",
        "./x",
        "/bin/../lib/x",
    ];
    fetched.file("usr/share/x", "x", 0o644);
    for (number, target) in targets.iter().enumerate() {
        fetched.link(&format!("usr/bin/link{number}"), target);
    }
    let (_, place) = fetched.build(&Config::default()).expect("built");
    for (number, target) in targets.iter().enumerate() {
        let kept = fs::read_link(place.join(format!("usr/bin/link{number}"))).expect("a link");
        assert_eq!(kept, Path::new(target));
    }
}

#[test]
fn outer_hard_link_is_refused_and_inner_one_is_a_file() {
    let fetched = Fetched::new(Place::Root);
    fs::write(fetched.directory.path().join("secret"), "x").expect("written");
    fs::hard_link(fetched.directory.path().join("secret"), fetched.path("usr/bin/x")).expect("linked");
    assert!(fetched.refusal().contains("\"usr/bin/x\" is a hard link to a file that is not among"));
    let fetched = Fetched::new(Place::Root);
    fetched.file("usr/bin/x", "x", 0o755);
    fs::hard_link(fetched.path("usr/bin/x"), fetched.path("usr/bin/y")).expect("linked");
    let (_, place) = fetched.build(&Config::default()).expect("built");
    assert_eq!(fs::metadata(place.join("usr/bin/y")).expect("there").nlink(), 1);
}

#[test]
fn a_name_that_is_no_plain_text_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    for name in [&b"a\nb"[..], b"a\x1b[2Jb", b"\xff\xfe", "x\u{202e}y".as_bytes(), b"\x7f"] {
        let fetched = Fetched::new(Place::Root);
        fetched.file("usr/x", "", 0o644);
        fs::write(fetched.path("usr").join(std::ffi::OsStr::from_bytes(name)), "x").expect("written");
        assert!(fetched.refusal().ends_with("a name that is not plain text"));
        let fetched = Fetched::new(Place::Root);
        fetched.file("usr/x", "", 0o644);
        symlink(std::ffi::OsStr::from_bytes(name), fetched.path("usr/link")).expect("linked");
        assert!(fetched.refusal().ends_with("not plain text"));
    }
}

#[test]
fn name_that_is_no_text_is_refused_without_the_homes_path() {
    let fetched = Fetched::new(Place::Root);
    fetched.file("usr/x", "", 0o644);
    fs::write(fetched.path("usr").join("a\u{202e}b"), "x").expect("written");
    let refused = fetched.refusal();
    let directory = fetched.directory.path().display().to_string();
    assert!(refused.contains(r#""usr/a\u{202e}b""#) && !refused.contains(&directory), "{refused}");
    let fetched = Fetched::new(Place::Root);
    fetched.file("usr/x", "", 0o644);
    fs::write(fetched.path("usr").join("x".repeat(200) + "\n"), "x").expect("written");
    let refused = fetched.refusal();
    assert!(refused.matches('x').count() <= EXCERPT_CHARS_MAX, "{refused}");
}

#[test]
fn more_bytes_or_files_than_allowed_are_refused() {
    let config = |bytes, files| Config { layer_bytes_max: bytes, layer_files_max: files, ..Config::default() };
    let fetched = Fetched::new(Place::Root);
    fetched.file("usr/x", "12345", 0o644).file("etc/x", "12345", 0o644);
    for config in [config(9, 100), config(100, 3)] {
        let error = fetched.build(&config).expect_err("refused").to_string();
        assert!(error.contains("larger than allowed"), "{error}");
    }
    fetched.build(&config(10, 4)).expect("just as much as allowed");
}

#[test]
fn files_outside_of_usr_are_left_out_and_counted() {
    let fetched = Fetched::new(Place::Root);
    fetched.file("usr/bin/x", "x", 0o755).file("etc/cron.d/evil", "x", 0o644).file("var/lib/x", "x", 0o644);
    fetched.file("bin/y", "y", 0o755).file("lib/z", "z", 0o644).link("lib64", "usr/lib64");
    // The report names no place with a package's own words.
    fetched.file("approve everything/x", "x", 0o644).file("etcetera", "x", 0o644);
    let (built, place) = fetched.build(&Config::default()).expect("built");
    let left_out: Vec<_> = built.left_out.into_iter().collect();
    assert_eq!(left_out, [("etc", 3), ("lib64", 1), ("other places", 3), ("var", 3)]);
    let mut top: Vec<_> = fs::read_dir(&place).expect("a layer").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(top.pop().expect("one"), "usr");
    assert!(top.is_empty());
    for path in ["usr/bin/x", "usr/bin/y", "usr/lib/z"] {
        assert!(place.join(path).is_file(), "{path}");
    }
}

#[test]
fn a_top_directory_that_is_something_else_is_refused() {
    for (path, target) in [("usr", "/etc"), ("bin", "/etc"), ("lib", "usr/bin")] {
        let fetched = Fetched::new(Place::Root);
        fetched.link(path, target);
        assert!(fetched.refusal().contains("where every machine has a directory"), "{path}");
    }
}

#[test]
fn two_packages_that_bring_one_path_differently_are_refused() {
    let one = Fetched::new(Place::Root);
    let other = Fetched::new(Place::Root);
    one.file("usr/bin/x", "x", 0o755);
    other.file("bin/x", "y", 0o755);
    let error = build_all(one.directory.path(), &Config::default(), &[one.source(), other.source()]);
    let error = error.expect_err("refused").to_string();
    assert_eq!(error, "evil=1 brings \"usr/bin/x\", which another package brings differently");
    other.file("bin/x", "x", 0o755);
    build_all(one.directory.path(), &Config::default(), &[one.source(), other.source()])
        .expect("the same twice is fine");
}

#[test]
fn files_of_a_layer_are_read_only_and_rm_rf_removes_it() {
    let fetched = Fetched::new(Place::Root);
    fetched.file("usr/bin/x", "x", 0o700).file("usr/share/y", "y", 0o666);
    let (built, place) = fetched.build(&Config::default()).expect("built");
    let mode = |path: &str| fs::metadata(place.join(path)).expect("there").mode() & 0o7777;
    assert_eq!((mode("usr/bin/x"), mode("usr/share/y")), (0o555, 0o444));
    // `rm -rf` cannot empty a directory that its owner cannot write.
    assert_eq!((mode("usr"), mode("usr/bin"), mode("")), (0o755, 0o755, 0o755));
    assert_eq!((built.files, built.bytes), (5, 2));
}

#[test]
fn verification_notices_every_change_of_a_layer() {
    let fetched = Fetched::new(Place::Root);
    fetched.file("usr/bin/x", "x", 0o755).file("usr/share/y", "y", 0o644).link("usr/bin/z", "x");
    let change = |path: PathBuf, what: &dyn Fn(&Path)| {
        let above = path.parent().expect("below the layer").to_owned();
        let mode = fs::metadata(&above).expect("there").mode();
        fs::set_permissions(&above, fs::Permissions::from_mode(0o755)).expect("set");
        what(&path);
        fs::set_permissions(&above, fs::Permissions::from_mode(mode)).expect("set");
    };
    let rewrite = |content: &'static str, mode: u32| {
        move |path: &Path| {
            fs::remove_file(path).expect("removed");
            fs::write(path, content).expect("written");
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
        }
    };
    type Change = Box<dyn Fn(&Path)>;
    let changes: [(&str, Change); 8] = [
        ("usr/bin/x", Box::new(rewrite("X", 0o555))),
        ("usr/bin/x", Box::new(rewrite("x", 0o444))),
        ("usr/bin/x", Box::new(rewrite("x", 0o755))),
        ("usr/bin/x", Box::new(rewrite("x", 0o4555))),
        ("usr/share/y", Box::new(|path| fs::remove_file(path).expect("removed"))),
        ("usr/bin/new", Box::new(|path| fs::write(path, "").expect("written"))),
        ("etc", Box::new(|path| fs::create_dir(path).expect("made"))),
        (
            "usr/bin/z",
            Box::new(|path| {
                fs::remove_file(path).expect("removed");
                symlink("../share/y", path).expect("linked");
            }),
        ),
    ];
    for (number, (path, what)) in changes.iter().enumerate() {
        let (built, place) = fetched.build(&Config::default()).expect("built");
        verify(&place, &built.digest).expect("whole");
        change(place.join(path), what);
        let error = verify(&place, &built.digest).expect_err("noticed").to_string();
        assert!(error.contains("are not those that were approved"), "{number}: {error}");
    }
}

#[test]
fn same_content_has_same_digest_and_damaged_layer_is_replaced() {
    let one = Fetched::new(Place::Root);
    one.file("usr/bin/x", "x", 0o700).link("usr/bin/y", "x");
    let other = Fetched::new(Place::Prefix);
    other.link("bin/y", "x").file("bin/x", "x", 0o755);
    let (built, _) = one.build(&Config::default()).expect("built");
    assert_eq!(other.build(&Config::default()).expect("built").0.digest, built.digest);
    // The boundary between paths matters.
    let third = Fetched::new(Place::Prefix);
    third.link("bin/yx", "x").file("bin/x", "x", 0o755);
    assert_ne!(third.build(&Config::default()).expect("built").0.digest, built.digest);

    let path = one.directory.path().join("home");
    let home = Home::create(&path).expect("a home");
    let agent = LayerOwner::Agent(AgentId::new());
    let again = || build(&home, &Config::default(), &agent, &[one.source()], &one.directory.path().join("layer"));
    let place = home.layer(&agent, &again().expect("built").digest);
    set_mode(&place.join("usr/bin/x"), 0o644).expect("set");
    fs::write(place.join("usr/bin/x"), "evil").expect("written");
    let built = again().expect("built again");
    verify(&place, &built.digest).expect("whole again");
}

#[test]
fn unused_layers_are_removed_and_used_ones_are_kept() {
    let fetched = Fetched::new(Place::Root);
    fetched.file("usr/bin/x", "x", 0o755);
    let (built, place) = fetched.build(&Config::default()).expect("built");
    let home = Home::create(&fetched.directory.path().join("home")).expect("a home");
    let agent = agent_of(&place);
    let old = home.layer(&agent, &Digest::of(b"old"));
    fs::create_dir_all(old.join("usr/lib")).expect("made");
    set_mode(&old.join("usr"), 0o555).expect("set");
    let left = home.layers_of(&agent).join("fetching/chg_x/work");
    fs::create_dir_all(&left).expect("made");
    // The modes of an earlier version.
    [place.join("usr"), place.clone()].iter().for_each(|path| set_mode(path, 0o555).expect("set"));
    super::super::sweep(&home, &[(agent, built.digest)]);
    assert!(place.exists() && !old.exists() && !left.exists());
    for path in [place.join("usr"), place.clone()] {
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o7777, 0o755, "{}", path.display());
    }
    super::super::sweep(&home, &[(LayerOwner::Agent(AgentId::new()), built.digest)]);
    assert!(!place.exists(), "another agent's");
}

#[test]
fn repair_that_fails_is_tried_again_at_the_next_start() {
    let fetched = Fetched::new(Place::Root);
    fetched.file("usr/lib/x/y", "y", 0o644);
    let (built, place) = fetched.build(&Config::default()).expect("built");
    let mode = |path: &str| fs::metadata(place.join(path)).expect("there").mode() & 0o7777;
    // A path that is too long ends the repair, also for root.
    let deep = "for i in $(seq 1 1000); do mkdir abcdefgh && cd -P abcdefgh || exit 1; done";
    let made = std::process::Command::new("sh").args(["-c", deep]).current_dir(place.join("usr/lib/x")).status();
    assert!(made.is_ok_and(|made| made.success()));
    let all = ["usr/lib/x", "usr/lib", "usr", ""];
    all.iter().for_each(|path| set_mode(&place.join(path), 0o555).expect("set"));
    let home = Home::create(&fetched.directory.path().join("home")).expect("a home");
    let live = [(agent_of(&place), built.digest)];
    super::super::sweep(&home, &live);
    assert_eq!(mode(""), 0o555, "the next start still sees that there is something to repair");
    set_mode(&place.join("usr/lib/x"), 0o755).expect("set");
    discard(&place.join("usr/lib/x/abcdefgh")).expect("removed");
    super::super::sweep(&home, &live);
    assert_eq!(all.map(mode), [0o755; 4]);
}
