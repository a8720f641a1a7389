//! Scenarios with jails that were made ahead.

use ironclaw_jail::launcher::{Jailed, Launcher, STOCK, Supply};
use ironclaw_jail::{Mount, Role, Spec, inspect};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The beginning of the mark of a session; its number follows.
const MARK: &str = "tRaCe-";
/// The longest wait for an event that takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);
/// Length of a measurement of wake-ups.
const QUIET: Duration = Duration::from_millis(300);

pub async fn play(scenario: &str, launcher: &Launcher, home: &Path, good: &Spec, stub: &Path) -> Value {
    match scenario {
        "stock-traces" => traces(launcher, home, good, stub).await,
        "stock-damaged" => damaged(launcher, good).await,
        "stock-quiet" => quiet(launcher, good).await,
        "stock-mounted" => mounted(launcher, home, good).await,
        other => panic!("no scenario {other}"),
    }
}

/// Returns the process ids of the jails in stock when the stock is full, or when it takes too long.
pub async fn full(launcher: &Launcher) -> Vec<u32> {
    let begun = Instant::now();
    loop {
        let found = stocked(launcher);
        if found.len() == STOCK || begun.elapsed() > PATIENCE {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn stocked(launcher: &Launcher) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", launcher.pid())).unwrap_or_default();
    let is_stocked =
        |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "ic-stock\n");
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(is_stocked).filter(is_alive).collect()
}

async fn launch(launcher: &Launcher, supply: Supply, spec: Spec) -> (Jailed, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    (launcher.launch_from(supply, spec, theirs.into()).await.expect("a jail"), ours)
}

/// Launches sessions in pairs, each in a jail that waited in stock while the sessions before it ran, and looks for their marks.
async fn traces(launcher: &Launcher, home: &Path, good: &Spec, stub: &Path) -> Value {
    let count: usize = std::env::var("IRONCLAW_STOCKED").ok().and_then(|text| text.parse().ok()).unwrap_or(100);
    drop(launch(launcher, Supply::Demand, good.clone()).await);
    let (mut found, mut from_stock, mut looked_into) = (Vec::new(), 0, 0);
    for first in (0..count).step_by(STOCK) {
        let waiting = full(launcher).await;
        let specs: Vec<Spec> = (first..first + STOCK).map(|number| marked(home, good, stub, number)).collect();
        let (one, two) = tokio::join!(
            launch(launcher, Supply::Stock, specs[0].clone()),
            launch(launcher, Supply::Stock, specs[1].clone())
        );
        for ((jailed, mut link), spec) in [one, two].into_iter().zip(specs) {
            link.read_exact(&mut [0]).expect("the stub has left its mark");
            from_stock += usize::from(jailed.from_stock && waiting.contains(&jailed.init_pid));
            found.extend(inspect::verify(&jailed.report().expect("a report"), &spec).err().unwrap_or_default());
            let own = &spec.name;
            for pid in [jailed.init_pid, jailed.pid] {
                let Some(marks) = marks_in(pid) else { continue };
                looked_into += 1;
                found.extend(marks.iter().filter(|mark| *mark != own).map(|mark| format!("{mark} in {own}")));
                if !marks.contains(own) {
                    found.push(format!("its own mark is not in {own}, so the look finds nothing"));
                }
            }
            let directory = spec.mounts[0].source.clone();
            let left = std::fs::read_dir(&directory).expect("a directory").flatten();
            found.extend(
                left.map(|entry| entry.file_name()).filter(|name| name != "mark").map(|name| format!("{name:?}")),
            );
            std::fs::remove_dir_all(directory).expect("removed");
        }
    }
    json!({ "sessions": count.next_multiple_of(STOCK), "from_stock": from_stock, "looked_into": looked_into, "found": found })
}

/// Returns the spec of a session whose mark is its name, its argument and the name of its directory.
fn marked(home: &Path, good: &Spec, stub: &Path, number: usize) -> Spec {
    let name = format!("{MARK}{number:06}");
    let source = home.join(&name);
    std::fs::create_dir(&source).expect("a directory");
    if nix::unistd::geteuid().is_root() {
        chown(&source, Some(200_001), Some(200_001)).expect("root can give files away");
    }
    let mount = Mount { source, target: "/workspace".into(), read_only: false, granted: false };
    let role = Role::Sandbox { program: stub.into(), args: vec!["mark".to_owned(), name.clone()] };
    Spec { name, role, mounts: vec![mount], ..good.clone() }
}

/// Returns the marks in the memory that a process can write; `None` if a security module forbids the look.
fn marks_in(pid: u32) -> Option<Vec<String>> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    let mut marks = Vec::new();
    for line in maps.lines().filter(|line| line.contains(" rw-p ")) {
        let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-')).expect("a range");
        let [from, to] = [range.0, range.1].map(|text| u64::from_str_radix(text, 16).expect("an address"));
        let mut bytes = vec![0; usize::try_from(to - from).expect("it fits")];
        if memory.read_exact_at(&mut bytes, from).is_err() {
            continue;
        }
        let length = MARK.len() + 6;
        for place in bytes.windows(length).filter(|place| place.starts_with(MARK.as_bytes())) {
            let text = String::from_utf8_lossy(place).into_owned();
            if text[MARK.len()..].bytes().all(|byte| byte.is_ascii_digit()) && !marks.contains(&text) {
                marks.push(text);
            }
        }
    }
    Some(marks)
}

/// Kills a process. Returns false if it had ended.
fn is_killed(pid: &u32) -> bool {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(*pid).expect("a process id"));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).is_ok()
}

fn is_alive(pid: &u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.contains("State:") && !status.contains("State:\tZ")
}

/// Kills the jails in stock and launches another one.
async fn damaged(launcher: &Launcher, good: &Spec) -> Value {
    let begun = Instant::now();
    let mut killed = Vec::new();
    // A mount of another test ends the stock, and the next launch makes another one.
    while killed.is_empty() && begun.elapsed() < 3 * PATIENCE {
        drop(launch(launcher, Supply::Demand, good.clone()).await);
        killed = full(launcher).await;
        if !killed.iter().all(is_killed) {
            killed.clear();
        }
    }
    while killed.iter().any(is_alive) && begun.elapsed() < 3 * PATIENCE {
        tokio::task::yield_now().await;
    }
    let (jailed, _link) = launch(launcher, Supply::Any, good.clone()).await;
    let faults = inspect::verify(&jailed.report().expect("a report"), good).err();
    json!({ "killed": killed.len(), "from_stock": jailed.from_stock, "faults": faults, "again": full(launcher).await.len() })
}

/// Counts wake-ups of the launcher and of the jails in stock while nothing is launched.
async fn quiet(launcher: &Launcher, good: &Spec) -> Value {
    let before_first = stocked(launcher).len();
    drop(launch(launcher, Supply::Demand, good.clone()).await);
    let stock = full(launcher).await;
    let all: Vec<u32> = stock.iter().copied().chain([launcher.pid()]).collect();
    let begun = Instant::now();
    let mut quiet = false;
    while !quiet && begun.elapsed() < PATIENCE {
        let before: Vec<_> = all.iter().map(|pid| wake_ups(*pid)).collect();
        tokio::time::sleep(QUIET).await;
        quiet = before == all.iter().map(|pid| wake_ups(*pid)).collect::<Vec<_>>();
    }
    let before = wake_ups(launcher.pid());
    drop(launch(launcher, Supply::Any, good.clone()).await);
    let woke = wake_ups(launcher.pid()) != before;
    json!({ "before_first": before_first, "stock": stock.len(), "quiet": quiet, "woke": woke })
}

fn wake_ups(pid: u32) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    text.lines().filter(|line| line.contains("ctxt_switches")).map(str::to_owned).collect()
}

/// Mounts a directory after the stock is full. The table of mounts is a copy of this program's own.
async fn mounted(launcher: &Launcher, home: &Path, good: &Spec) -> Value {
    use nix::mount::{MsFlags, mount};
    drop(launch(launcher, Supply::Demand, good.clone()).await);
    let stock = full(launcher).await.len();
    let data = home.join("workspace");
    mount(Some("late"), &data, Some("tmpfs"), MsFlags::empty(), Some("mode=0777")).expect("root can mount");
    std::fs::write(data.join("late"), "x").expect("a file");
    let (jailed, _link) = launch(launcher, Supply::Any, good.clone()).await;
    let shown = PathBuf::from(format!("/proc/{}/root/workspace/late", jailed.pid)).exists();
    json!({ "stock": stock, "from_stock": jailed.from_stock, "shown": shown })
}
