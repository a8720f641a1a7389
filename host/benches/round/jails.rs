//! A jail around `/bin/true` through a real launcher, compared with the bare program and with `bwrap`.
//!
//! Runs in its own process, because a launcher is forked before the first thread. See `main`.

use crate::figures::{Report, Samples};
use crate::jail_fixture::{MAPPED, directory, set_owner};
use ironclaw_jail::launcher::{self, Entries, Launcher, Supply};
use ironclaw_jail::{Identity, Limits, Mount, Role, Spec};
use nix::unistd::geteuid;
use serde_json::{Value, json};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Launches of each kind, alternating.
const LAUNCHES: usize = 200;
const WARM_UP: usize = 20;
/// Time in which the launcher makes jails for the stock.
const REST: Duration = Duration::from_millis(80);

/// A program without work.
const NOOP: &str = "/bin/true";
/// The usual path of `bwrap`.
const BWRAP: &str = "/usr/bin/bwrap";

/// Runs [`measure`] in its own process and adds the results.
pub(crate) fn bench(report: &mut Report) {
    let home = directory();
    for name in ["in", "out", "workspace"] {
        let path = home.path().join(name);
        std::fs::create_dir(&path).expect("a directory");
        set_owner(&path, MAPPED);
    }
    let mut command = Command::new(std::env::current_exe().expect("a bench knows where it is"));
    command.arg("jails").arg(home.path()).env_clear();
    let output = command.stderr(Stdio::inherit()).output().expect("it runs");
    assert!(output.status.success(), "`ironclaw-host preflight` says what this machine lacks");
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let samples = |name: &str| -> Option<Samples> {
        Some(result[name].as_array()?.iter().filter_map(Value::as_f64).collect::<Samples>())
    };
    let jail = samples("jail").expect("launches");
    report.times("jail_started", "jail: request → no-op executed, root closed", &samples("started").expect("launches"));
    report.times("jail", "jail: request → end of the no-op known", &jail);
    let stocked = samples("stocked").expect("launches");
    report.times(
        "jail_stocked",
        "jail from stock: request → no-op executed, root closed",
        &samples("open").expect("launches"),
    );
    report.times("jail_from_stock", "jail from stock: request → end of the no-op known", &stocked);
    report.ratio("demand_to_stock", "jail on demand / from stock", jail.p50() / stocked.p50());
    report.times("spawn", "the same program, bare", &samples("spawn").expect("launches"));
    match samples("bwrap") {
        Some(bwrap) => {
            report.times("bwrap", "the same in bwrap (a comparable view, no filter)", &bwrap);
            report.ratio("bwrap_to_jail", "bwrap / jail (goal: at least 2)", bwrap.p50() / jail.p50());
            report.ratio("bwrap_to_stock", "bwrap / jail from stock", bwrap.p50() / stocked.p50());
        }
        None => report.missing("bwrap", "the same in bwrap", "not present"),
    }
}

/// Times the kinds in alternation and prints the seconds as JSON.
pub(crate) fn measure(home: &Path) {
    let handle =
        launcher::fork(Entries { reader: |_| 0, probe: None }).expect("the launcher is forked before any thread");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts");
    let launcher = {
        let _inside = runtime.enter();
        Launcher::start(handle).expect("the launcher connects")
    };
    let with_bwrap = Path::new(BWRAP).exists();
    let (mut started, mut jail, mut spawn, mut bwrap) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut open_stocked, mut stocked) = (Vec::new(), Vec::new());
    for number in 0..LAUNCHES + WARM_UP {
        let (open, ended) = runtime.block_on(launch(&launcher, Supply::Demand, spec(home)));
        let bare = run(Command::new(NOOP));
        let wrapped = with_bwrap.then(|| run(in_bwrap(home)));
        std::thread::sleep(REST);
        let from_stock = runtime.block_on(launch(&launcher, Supply::Any, spec(home)));
        if number >= WARM_UP {
            started.push(open);
            jail.push(ended);
            open_stocked.push(from_stock.0);
            stocked.push(from_stock.1);
            spawn.push(bare);
            bwrap.extend(wrapped);
        }
    }
    let bwrap = with_bwrap.then_some(bwrap);
    let times = json!({ "started": started, "jail": jail, "spawn": spawn, "bwrap": bwrap, "open": open_stocked, "stocked": stocked });
    println!("{times}");
}

async fn launch(launcher: &Launcher, supply: Supply, spec: Spec) -> (f64, f64) {
    let (_ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    let begun = Instant::now();
    let jailed = launcher.launch_from(supply, spec, theirs.into()).await.expect("a jail");
    let open = begun.elapsed().as_secs_f64();
    assert_eq!(jailed.from_stock, supply == Supply::Any, "the stock is full after a rest");
    jailed.exited().await;
    (open, begun.elapsed().as_secs_f64())
}

fn run(mut command: Command) -> f64 {
    let begun = Instant::now();
    let status = command.env_clear().stdin(Stdio::null()).status().expect("it runs");
    let took = begun.elapsed().as_secs_f64();
    assert!(status.success(), "{command:?}");
    took
}

fn spec(home: &Path) -> Spec {
    let mount = |name: &str, read_only| Mount {
        source: home.join(name),
        target: format!("/{name}"),
        read_only,
        granted: false,
    };
    Spec {
        name: "ses_bench".to_owned(),
        role: Role::Noop { program: NOOP.into() },
        mounts: vec![mount("in", true), mount("out", false), mount("workspace", false)],
        system: None,
        listener: None,
        identity: match geteuid().is_root() {
            true => Identity::Mapped { uid: MAPPED, gid: MAPPED },
            false => Identity::Own,
        },
        limits: Limits::default(),
    }
}

/// Returns `bwrap` with the same three directories and namespaces. It also binds `/usr`, because bwrap executes the program after the
/// pivot.
fn in_bwrap(home: &Path) -> Command {
    let mut command = Command::new(BWRAP);
    command.args(["--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"]);
    command.args(["--hostname", "ironclaw", "--ro-bind", "/usr", "/usr"]);
    for link in ["bin", "lib", "lib64"] {
        command.args(["--symlink", &format!("usr/{link}"), &format!("/{link}")]);
    }
    for (how, name) in [("--ro-bind", "in"), ("--bind", "out"), ("--bind", "workspace")] {
        command.arg(how).arg(home.join(name)).arg(format!("/{name}"));
    }
    command.args(["--chdir", "/", NOOP]);
    command
}
