//! Tests of `.ci/test` and of its list `.ci/needs`.
//!
//! They run a copy of the script on a search path of their own, where `cargo` and `apt-get` are short scripts. Nothing is compiled, and
//! nothing is installed. See `support::needs`.

use crate::layers::source::{read, workspace};
use crate::support::jail_fixture::{HostUser, ORDINARY_UID};
use crate::support::needs::{Test, lines, needs, programs, tests, tests_of_root};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs that tests run on every machine that compiles this project: Rust, perl, bash, coreutils and the loader.
const OF_EVERY_MACHINE: [&str; 8] = ["chmod", "cp", "ldd", "mkfifo", "perl", "sh", "sleep", "umount"];

/// Prints as the test harness does, with as many tests left out as there are names, and keeps its arguments.
const CARGO: &str = r#"#!/bin/sh
[ "$1" = test ] || exit 0
printf '%s\n' "$@" >> "$HERE/cargo.log"
[ ! -e "$HERE/broken" ] || { echo 'error: could not compile'; exit 101; }
skipped=0
for word in "$@"; do [ "$word" != --skip ] || skipped=$((skipped + 1)); done
echo "test result: ok. 5 passed; 0 failed; 3 ignored; 0 measured; $skipped filtered out; finished in 0.01s"
[ ! -e "$HERE/failing" ] || { echo 'test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s'; exit 101; }
echo 'test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s'
"#;

/// Installs the packages for which there is a directory below `offers`, all or none of them, and keeps its arguments.
const APT_GET: &str = r#"#!/bin/sh
echo "$@" >> "$HERE/apt.log"
while [ "$#" -gt 0 ] && [ "$1" != install ]; do shift; done
for word in "$@"; do
    case $word in install | -*) ;; *) [ -d "$HERE/offers/$word" ] || exit 100 ;; esac
done
for word in "$@"; do [ ! -d "$HERE/offers/$word" ] || cp "$HERE/offers/$word/"* "$HERE/usr/bin/"; done
"#;

/// A copy of the script, with a search path that has no program of the list.
struct Machine {
    place: tempfile::TempDir,
}

/// What the script printed, and its exit code.
struct Ran {
    code: Option<i32>,
    lines: Vec<String>,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { place: tempfile::tempdir().expect("a directory") };
        fs::set_permissions(machine.place.path(), PermissionsExt::from_mode(0o777)).expect("set");
        for name in [".ci", "bin", "usr/bin", "offers"] {
            fs::create_dir_all(machine.at(name)).expect("made");
        }
        let own = machine.at("usr/bin").display().to_string();
        let script = read(&workspace().join(".ci/test"));
        let path = script.lines().find(|line| line.starts_with("machine_path=")).expect("the path of the machine");
        machine.put(".ci/test", &script.replace(path, &format!("machine_path={own}")));
        machine.put(".ci/needs", &read(&workspace().join(".ci/needs")).replace(" /usr/bin\n", &format!(" {own}\n")));
        machine.put(".ci/programs", "#!/bin/sh\n");
        machine.put("bin/cargo", CARGO);
        machine.put("bin/apt-get", APT_GET);
        for name in ["bash", "sh", "cp", "dirname", "mktemp", "paste", "rm", "sort", "tee"] {
            let found = ["/usr/bin", "/bin"].map(|directory| Path::new(directory).join(name));
            let found = found.iter().find(|path| path.exists()).expect(name);
            symlink(found, machine.at("bin").join(name)).expect("linked");
        }
        for name in ["cc", "make", "perl"] {
            machine.put(&format!("bin/{name}"), "");
        }
        machine
    }

    fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }
    fn put(&self, name: &str, text: &str) {
        fs::write(self.at(name), text).expect("written");
        fs::set_permissions(self.at(name), PermissionsExt::from_mode(0o755)).expect("set");
    }

    /// Makes all programs of a package something that `apt-get` can install.
    fn offer(&self, package: &str) {
        fs::create_dir(self.at("offers").join(package)).expect("made");
        for program in programs().iter().filter(|program| program.package == package) {
            self.put(&format!("offers/{package}/{}", program.name), "");
        }
    }

    /// Puts all programs where apt would install them.
    fn install(&self) {
        for program in programs() {
            self.put(&format!("usr/bin/{}", program.name), "");
        }
    }

    /// Runs the script as root or as another user. An ordinary user is root in a namespace.
    fn run(&self, user: HostUser) -> Ran {
        let is_root = nix::unistd::geteuid().is_root();
        let mut command = match user {
            HostUser::Root if !is_root => Command::new("/usr/bin/unshare"),
            HostUser::Root | HostUser::Ordinary => Command::new(self.at("bin/bash")),
        };
        match user {
            HostUser::Root if !is_root => drop(command.arg("--map-root-user").arg(self.at("bin/bash"))),
            HostUser::Ordinary if is_root => drop(command.uid(ORDINARY_UID).gid(ORDINARY_UID)),
            HostUser::Root | HostUser::Ordinary => {}
        }
        command.arg(self.at(".ci/test")).env_clear().env("PATH", self.at("bin")).env("HERE", self.place.path());
        let output = command.output().expect("bash runs");
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        Ran { code: output.status.code(), lines: said.lines().map(str::to_owned).collect() }
    }

    /// Returns the lines that a fake program kept.
    fn kept(&self, name: &str) -> Vec<String> {
        fs::read_to_string(self.at(name)).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Returns the names of the tests that cargo left out.
    fn skipped(&self) -> BTreeSet<String> {
        let words = self.kept("cargo.log");
        words.windows(2).filter(|pair| pair[0] == "--skip").map(|pair| pair[1].clone()).collect()
    }
}

/// Returns the names of the tests that need one of these programs.
fn tests_of(missing: &[&str]) -> BTreeSet<String> {
    let needing = |test: &Test<'_>| test.programs.iter().any(|name| missing.contains(name));
    tests().iter().filter(|test| needing(test)).map(|test| test.name.to_owned()).collect()
}

#[test]
fn missing_compiler_ends_the_run_with_the_remedy() {
    let machine = Machine::new();
    fs::remove_file(machine.at("bin/make")).expect("removed");
    let ran = machine.run(HostUser::Ordinary);
    assert_eq!(ran.lines, ["missing for the build: make", "install them as root: apt-get install make"]);
    assert_eq!((ran.code, machine.kept("cargo.log").len()), (Some(1), 0));
    fs::remove_file(machine.at("bin/cargo")).expect("removed");
    machine.put("bin/make", "");
    let ran = machine.run(HostUser::Ordinary);
    assert!(ran.code == Some(1) && ran.lines[0].contains("cargo"), "{:?}", ran.lines);
}

#[test]
fn other_user_reads_first_which_tests_are_left_out() {
    let machine = Machine::new();
    let ran = machine.run(HostUser::Ordinary);
    let names: Vec<&str> = programs().iter().map(|program| program.name).collect();
    let packages: BTreeSet<&str> = programs().iter().map(|program| program.package).collect();
    let packages: Vec<&str> = packages.into_iter().collect();
    let count = tests().len();
    assert_eq!(ran.lines[0], format!("missing: {}", names.join(" ")));
    assert_eq!(ran.lines[1], format!("install them as root: apt-get install {}", packages.join(" ")));
    assert_eq!(ran.lines[2], format!("left out because of that: {count} tests"));
    for (line, test) in ran.lines[3..].iter().zip(tests()) {
        assert_eq!(line.trim(), format!("{}: {}", test.name, test.programs.join(" ")));
    }
    let (skipped, of_root) = (machine.skipped(), tests_of_root());
    let mut expected = tests_of(&names);
    expected.extend(of_root.iter().map(|name| (*name).to_owned()));
    assert_eq!(skipped, expected);
    assert!(machine.kept("cargo.log").contains(&"--exact".to_owned()), "a name leaves out one test alone");
    assert_eq!(ran.lines.last(), Some(&format!("7 passed, 0 failed, {} skipped", expected.len())));
    assert_eq!((ran.code, machine.kept("apt.log").len()), (Some(0), 0), "only root installs");
}

#[test]
fn tests_of_root_are_left_out_by_name_for_another_user() {
    let machine = Machine::new();
    machine.install();
    // Another user looks on the search path alone.
    programs().iter().for_each(|program| machine.put(&format!("bin/{}", program.name), ""));
    let ran = machine.run(HostUser::Ordinary);
    let of_root = tests_of_root();
    assert_eq!(ran.lines[0], "every program of the tests is there");
    assert_eq!(ran.lines[1], format!("left out because only root can run them: {} tests", of_root.len()));
    let named: Vec<&str> = ran.lines[2..].iter().take(of_root.len()).map(|line| line.trim()).collect();
    assert_eq!(named, of_root);
    assert_eq!(machine.skipped(), of_root.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(ran.lines.last(), Some(&format!("7 passed, 0 failed, {} skipped", of_root.len())));
    assert_eq!(ran.code, Some(0));
}

#[test]
fn test_of_root_fails_for_another_user_with_the_remedy() {
    let test = "ops::file_systems::home_on_a_fuse_mount_is_refused_by_name";
    // The program of the tests may be in a directory of root alone.
    let mut command = Command::new("/proc/self/exe");
    command.args(["--exact", test, "--nocapture"]).current_dir("/");
    if nix::unistd::geteuid().is_root() {
        command.uid(ORDINARY_UID).gid(ORDINARY_UID);
    }
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("run .ci/test"), "{said}");
}

#[test]
fn root_installs_programs_and_leaves_out_the_rest() {
    needs("unshare");
    let machine = Machine::new();
    let packages: BTreeSet<&str> = programs().iter().map(|program| program.package).collect();
    for package in packages.iter().filter(|package| !["npm", "curl"].contains(package)) {
        machine.offer(package);
    }
    let ran = machine.run(HostUser::Root);
    let asked = machine.kept("apt.log");
    assert!(asked[0].ends_with(" update") && asked[1].contains(" install "), "{asked:?}");
    let (skipped, missing) = (machine.skipped(), tests_of(&["npm", "curl"]));
    assert_eq!(skipped, missing, "{:#?}", ran.lines);
    assert!(ran.lines.iter().any(|line| line == "missing: curl npm"), "{:#?}", ran.lines);
    assert_eq!(ran.lines.last(), Some(&format!("7 passed, 0 failed, {} skipped", missing.len())));
    assert_eq!(ran.code, Some(0));
    // Without apt-get, and with programs that are not on the search path.
    let machine = Machine::new();
    machine.install();
    for name in ["bin/apt-get", "usr/bin/apt-get", "usr/bin/openssl"] {
        fs::remove_file(machine.at(name)).expect("removed");
    }
    let ran = machine.run(HostUser::Root);
    let first = ["missing: apt-get openssl", "install them; Debian has them in these packages: apt openssl"];
    assert_eq!(ran.lines[..2], first);
    assert_eq!((ran.code, machine.skipped()), (Some(0), tests_of(&["apt-get", "openssl"])));
}

#[test]
fn numbers_and_exit_code_are_of_all_test_programs() {
    needs("unshare");
    for (file, last, code) in [
        ("", "7 passed, 0 failed, 0 skipped", 0),
        ("failing", "6 passed, 2 failed, 0 skipped", 101),
        ("broken", "0 passed, 0 failed, 0 skipped", 101),
    ] {
        let machine = Machine::new();
        machine.install();
        machine.put(if file.is_empty() { "nothing" } else { file }, "");
        let ran = machine.run(HostUser::Root);
        assert_eq!(ran.lines[0], "every program of the tests is there");
        assert_eq!((ran.lines.last().map(String::as_str), ran.code), (Some(last), Some(code)), "{:#?}", ran.lines);
        assert_eq!((machine.skipped().len(), machine.kept("apt.log").len()), (0, 0));
    }
}

#[test]
fn test_without_its_program_fails_with_the_remedy() {
    let test = "e2e::webhook::example_of_the_webhook_page_runs_as_written";
    let own = std::env::current_exe().expect("a program");
    let output = Command::new(own).args(["--exact", test, "--nocapture"]).env("PATH", "").output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("apt-get install curl"), "{said}");
}

#[test]
fn list_names_existing_tests_and_known_programs() {
    let (known, all, of_root) = (programs(), sources(), tests_of_root());
    let count = known.len() + tests().len() + of_root.len();
    assert_eq!(lines().count(), count, "each line of .ci/needs is a program, a test or a test of root");
    let is_function = |test: &str| {
        let (_, function) = test.rsplit_once("::").expect("a module and a function");
        let found = all.iter().filter(|(_, text)| text.contains(&format!("fn {function}(")));
        assert_eq!(found.count(), 1, "one function has the name of the test {test}");
    };
    let mut names = BTreeSet::new();
    for test in tests() {
        assert!(names.insert(test.name), "{} has two lines", test.name);
        assert!(!test.programs.is_empty(), "{} needs nothing", test.name);
        for name in test.programs {
            assert!(known.iter().any(|program| program.name == name), "{}: no program {name}", test.name);
        }
        is_function(test.name);
    }
    let mut names = BTreeSet::new();
    for test in of_root {
        assert!(names.insert(test), "{test} has two lines of root");
        is_function(test);
    }
    for program in known {
        let is_used = tests().iter().any(|test| test.programs.contains(&program.name));
        assert!(is_used, "no test needs {}: delete its line", program.name);
    }
}

#[test]
fn program_that_a_test_starts_is_listed() {
    let mut strange = Vec::new();
    for (file, text) in sources() {
        // Benches run by hand, and the installer of the long campaign of MCP.
        if file.components().any(|part| part.as_os_str() == "benches") {
            continue;
        }
        for (_, after) in text.match_indices("Command::new(\"").map(|(at, found)| text.split_at(at + found.len())) {
            let name = after.split('"').next().unwrap_or_default();
            let is_listed = programs().iter().any(|program| program.name == name);
            if !is_listed && !OF_EVERY_MACHINE.contains(&name) && !name.starts_with('/') {
                strange.push(format!("{}: {name}", file.display()));
            }
        }
    }
    assert!(strange.is_empty(), "add these programs to .ci/needs: {strange:#?}");
}
fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut directories: Vec<PathBuf> =
        ["contract", "host", "ironctl", "sandbox"].map(|name| workspace().join(name)).into();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("a directory").flatten() {
            let path = entry.path();
            match path.extension() {
                Some(extension) if extension == "rs" => found.push((path.clone(), read(&path))),
                None if path.is_dir() => directories.push(path),
                Some(_) | None => {}
            }
        }
    }
    found
}
