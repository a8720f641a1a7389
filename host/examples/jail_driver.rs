//! Driver that plays one scenario through a real launcher and prints the result as JSON.
//!
//! It is a separate program, because a launcher is forked before any thread exists, and a test program has threads.
//! Only for tests and benches. See `host/tests/security/jail.rs`.
#![allow(clippy::print_stdout)]

#[path = "jail_driver/mcp.rs"]
mod mcp;
#[path = "jail_driver/stock.rs"]
mod stock;

use ironclaw_jail::client::{Client, Streams};
use ironclaw_jail::launcher::{self, Entries, Launcher};
use ironclaw_jail::{Facts, Identity, Limits, Mount, Probe, Role, Spec, System, inspect, self_test};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [scenario, home, stub] = arguments.as_slice() else {
        panic!("usage: jail_driver SCENARIO HOME STUB");
    };
    if let Some(settings) = scenario.strip_prefix("preflight:") {
        outer_filter(stub);
        let found = ironclaw_host::daemon::preflight::run(Path::new(settings), ironclaw_jail::FIRST_HOST_ID);
        println!("{}", serde_json::to_string(&found).expect("plain data"));
        return;
    }
    // Another test that mounts something would empty the stock.
    if nix::unistd::geteuid().is_root() && ["stock", "stay", "daemon"].iter().any(|name| scenario.starts_with(name)) {
        own_mounts();
    }
    let handle = launcher::fork(Entries { reader, probe: Some(self_test::run) })
        .expect("the launcher is forked before any thread");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts");
    let result = runtime.block_on(async {
        let launcher = Launcher::start(handle).expect("the launcher connects");
        play(scenario, &launcher, Path::new(home), stub.into()).await
    });
    println!("{result}");
}

/// Gives this process a table of mounts of its own. Only root can do that.
fn own_mounts() {
    use nix::mount::{MsFlags, mount};
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS).expect("root can have its own mounts");
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>).expect("root can change its mounts");
}

/// Applies the seccomp filter of a container to this process. The order is `namespaces` or `mounts` with the number of the error, such
/// as `namespaces:1`. New user namespaces or mounts then fail with this error.
fn outer_filter(order: &str) {
    use seccompiler::{SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule};
    let Some((what, errno)) = order.split_once(':') else {
        return;
    };
    let user = libc::CLONE_NEWUSER as u64;
    let new_user = || {
        let condition = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(user), user);
        vec![SeccompRule::new(vec![condition.expect("a condition")]).expect("a rule")]
    };
    let rules = match what {
        "namespaces" => vec![(libc::SYS_clone, new_user()), (libc::SYS_unshare, new_user())],
        "mounts" => vec![(libc::SYS_mount, Vec::new()), (libc::SYS_pivot_root, Vec::new())],
        other => panic!("no filter {other}"),
    };
    let filter = SeccompFilter::new(
        rules.into_iter().collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(errno.parse().expect("an errno")),
        std::env::consts::ARCH.try_into().expect("a known architecture"),
    );
    let program: seccompiler::BpfProgram = filter.and_then(TryInto::try_into).expect("a filter");
    seccompiler::apply_filter(&program).expect("the filter is installed");
}

/// The reader of these scenarios. It returns its input in capitals.
fn reader(link: OwnedFd) -> i32 {
    let mut link = UnixStream::from(link);
    let mut heard = [0; 16];
    let variables = std::env::vars_os().count();
    match link.read(&mut heard) {
        Ok(length) => {
            let said = format!("{} {variables}", String::from_utf8_lossy(&heard[..length]).to_uppercase());
            i32::from(link.write_all(said.as_bytes()).is_err()) + 7
        }
        Err(_) => 1,
    }
}

fn spec(home: &Path, role: Role) -> Spec {
    let mount = |name: &str, read_only| Mount {
        source: home.join(name),
        target: format!("/{name}"),
        read_only,
        granted: false,
    };
    let identity = match nix::unistd::geteuid().is_root() {
        true => Identity::Mapped { uid: 200_001, gid: 200_001 },
        false => Identity::Own,
    };
    Spec {
        name: "ses_test".into(),
        role,
        mounts: vec![mount("in", true), mount("out", false), mount("workspace", false)],
        system: None,
        listener: None,
        identity,
        limits: Limits { launch_ms: 20_000, ..Limits::default() },
    }
}

async fn play(scenario: &str, launcher: &Launcher, home: &Path, stub: PathBuf) -> Value {
    let sandbox = |order: &str| Role::Sandbox { program: stub.clone(), args: vec![order.to_owned()] };
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    let mut spec = spec(home, sandbox("stay"));
    match scenario {
        "report" => {
            spec.role = sandbox("hide");
            let jailed = launcher.launch(spec.clone(), theirs.into()).await.expect("a jail");
            (&ours).read_exact(&mut [0]).expect("the stub has hidden itself");
            let report = jailed.report().expect("a report");
            json!({ "faults": inspect::verify(&report, &spec).err(), "report": report })
        }
        "look" => {
            spec.role = sandbox("look");
            let _jailed = launcher.launch(spec, theirs.into()).await.expect("a jail");
            serde_json::from_str(&read_all(ours)).expect("the stub writes JSON")
        }
        "reader" => {
            spec.role = Role::Reader;
            let jailed = launcher.launch(spec.clone(), theirs.into()).await.expect("a jail");
            let faults = inspect::verify(&jailed.report().expect("a report"), &spec).err();
            (&ours).write_all(b"hello").expect("the reader reads");
            let heard = read_all(ours);
            json!({ "faults": faults, "heard": heard, "exit": jailed.exited().await })
        }
        "prove" => {
            let mut reader = spec.clone();
            reader.mounts.retain(|mount| mount.target == "/out");
            reader.mounts[0].read_only = true;
            let host_files = vec![("the home".to_owned(), home.to_owned())];
            let surroundings = self_test::HostTargets { host_socket: home.join("api.sock"), host_files };
            match self_test::prove(launcher, &spec, &reader, None, None, surroundings).await {
                Ok(proof) => json!(proof),
                Err(error) => json!({ "error": error.to_string() }),
            }
        }
        "programs" | "programs-in-a-layer" => {
            spec.system = Some(System { layer: (scenario == "programs-in-a-layer").then(|| layer(home)) });
            spec.mounts.push(granted(home, "data", true));
            spec.mounts.push(granted(home, "shared", false));
            let mut reader = self::spec(home, Role::Reader);
            reader.mounts.retain(|mount| mount.target == "/out");
            reader.mounts[0].read_only = true;
            let surroundings = self_test::HostTargets { host_socket: home.join("api.sock"), host_files: Vec::new() };
            match self_test::prove(launcher, &spec, &reader, None, None, surroundings).await {
                Ok(proof) => json!(proof),
                Err(error) => json!({ "error": error.to_string(), "cause": format!("{error:?}") }),
            }
        }
        "server" => {
            let server = server(home, &[]);
            let reader = self::spec(home, Role::Reader);
            let surroundings = self_test::HostTargets { host_socket: home.join("api.sock"), host_files: Vec::new() };
            match self_test::prove(launcher, &spec, &reader, Some(&server), None, surroundings).await {
                Ok(proof) => json!(proof),
                Err(error) => json!({ "error": error.to_string() }),
            }
        }
        "listener" => {
            let commands = Spec { listener: Some(8129), ..server(home, &[]) };
            let reader = self::spec(home, Role::Reader);
            let surroundings = self_test::HostTargets { host_socket: home.join("api.sock"), host_files: Vec::new() };
            match self_test::prove(launcher, &spec, &reader, None, Some(&commands), surroundings).await {
                Ok(proof) => json!(proof),
                Err(error) => json!({ "error": error.to_string() }),
            }
        }
        "server-programs" => server_programs(launcher, home).await,
        scenario if scenario.starts_with("stock-") => stock::play(scenario, launcher, home, &spec, &stub).await,
        "mcp" | "mcp-browser" | "mcp-end" | "mcp-layer" => mcp::play(scenario, launcher, home).await,
        "granted" => granted_refusals(launcher, home, &spec).await,
        "abort" => {
            spec.role = sandbox("abort");
            let jailed = launcher.launch(spec, theirs.into()).await.expect("a jail");
            json!({ "exit": jailed.exited().await })
        }
        "kill" => {
            let jailed = launcher.launch(spec, theirs.into()).await.expect("a jail");
            jailed.kill();
            json!({ "exit": jailed.exited().await, "left": Path::new(&format!("/proc/{}", jailed.pid)).exists() })
        }
        "stay" | "daemon" => {
            spec.role = sandbox(scenario);
            let jailed = launcher.launch(spec, theirs.into()).await.expect("a jail");
            let stock = stock::full(launcher).await;
            let (launcher_pid, init, program) = (launcher.pid(), jailed.init_pid, jailed.pid);
            println!("{}", json!({ "launcher": launcher_pid, "init": init, "program": program, "stock": stock }));
            launcher.died().await;
            json!({ "exit": jailed.exited().await, "again": refusal(launcher, self::spec(home, Role::Reader)).await })
        }
        "many" => {
            let others = futures(launcher, &spec).await;
            json!({ "jails": others })
        }
        "abandoned" => {
            spec.role = sandbox("never-knock");
            spec.limits.launch_ms = 60_000;
            let launch = launcher.launch(spec.clone(), theirs.into());
            let late = tokio::time::timeout(Duration::from_millis(50), launch).await.is_err();
            // The launcher serves requests in order, so the first jail is ending when this answer arrives.
            spec.role = Role::Noop { program: "/bin/true".into() };
            let (_ours, theirs) = UnixStream::pair().expect("a pair of sockets");
            let jailed = launcher.launch(spec, theirs.into()).await.expect("a jail");
            jailed.exited().await;
            let begun = Instant::now();
            let children =
                |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
            // A process 1 in stock has no program.
            let left = || {
                let inits = children(&launcher.pid().to_string());
                inits.split_whitespace().any(|init| !children(init).is_empty())
            };
            while left() && begun.elapsed() < Duration::from_secs(10) {
                tokio::task::yield_now().await;
            }
            json!({ "late": late, "left": left() })
        }
        "late" => {
            spec.role = sandbox("never-knock");
            spec.limits.launch_ms = 2_000;
            let late = spec.clone();
            // The launcher serves another launch while the first one hangs.
            spec.role = Role::Noop { program: "/bin/true".into() };
            let begun = Instant::now();
            let (late, noop) = tokio::join!(refusal(launcher, late), async {
                let jailed = launcher.launch(spec, theirs.into()).await.expect("a jail");
                jailed.exited().await;
                begun.elapsed().as_millis()
            });
            json!({ "late": late, "noop_ms": noop, "late_ms": begun.elapsed().as_millis() })
        }
        "refusals" => refusals(launcher, home, &spec).await,
        "noop" => bench(launcher, spec).await,
        other => panic!("no scenario {other}"),
    }
}

async fn futures(launcher: &Launcher, spec: &Spec) -> usize {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let (launcher, spec) = (launcher.clone(), spec.clone());
        tasks.spawn(async move {
            let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
            let jailed = launcher.launch(spec.clone(), theirs.into()).await.expect("a jail");
            let verified = inspect::verify(&jailed.report().expect("a report"), &spec).is_ok();
            drop(ours);
            verified && jailed.exited().await == launcher::Exit::Code(0)
        });
    }
    tasks.join_all().await.into_iter().filter(|held| *held).count()
}

async fn refusals(launcher: &Launcher, home: &Path, good: &Spec) -> Value {
    let with = |change: &dyn Fn(&mut Spec)| {
        let mut spec = good.clone();
        change(&mut spec);
        spec
    };
    let link = home.join("a-link");
    std::os::unix::fs::symlink(home.join("workspace"), &link).expect("a link");
    let unreadable = home.join("no-program");
    std::fs::write(&unreadable, b"#!/bin/sh\n").expect("a file");
    let sandbox = |program: &Path| Role::Sandbox { program: program.into(), args: Vec::new() };
    let cases: [(&str, Spec); 10] = [
        ("missing", with(&|s| s.mounts[0].source = home.join("nowhere"))),
        ("link", with(&|s| s.mounts[2].source = link.clone())),
        ("file", with(&|s| s.mounts[0].source = unreadable.clone())),
        ("target", with(&|s| s.mounts[0].target = "/in/../x".into())),
        ("twice", with(&|s| s.mounts[1].target = "/in".into())),
        ("no_program", with(&|s| s.role = sandbox(&home.join("nowhere")))),
        ("not_executable", with(&|s| s.role = sandbox(&unreadable))),
        ("no_gate", with(&|s| s.role = sandbox(Path::new("/bin/true")))),
        ("control", with(&|s| s.role = Role::Probe(Probe::Control(Facts::default())))),
        ("root", with(&|s| s.identity = Identity::Mapped { uid: 0, gid: 0 })),
    ];
    let mut result = serde_json::Map::new();
    for (name, spec) in cases {
        result.insert(name.into(), refusal(launcher, spec).await);
    }
    Value::Object(result)
}

/// Returns the mount of a granted directory, and makes the directory if it is missing.
fn granted(home: &Path, name: &str, read_only: bool) -> Mount {
    let source = home.join(name);
    let _ = std::fs::create_dir(&source);
    // Every user must be able to read it, because the jail may run as any uid.
    std::fs::set_permissions(&source, PermissionsExt::from_mode(0o777)).expect("we own the directory");
    Mount { source, target: format!("/{name}"), read_only, granted: true }
}

/// Specifies the jail of an MCP server that runs the program of these words.
fn server(home: &Path, words: &[&str]) -> Spec {
    let errors = "/state/stderr.log".to_owned();
    let client = Client {
        program: words.first().map_or_else(String::new, |word| format!("/usr/bin/{word}")),
        args: words.iter().skip(1).map(ToString::to_string).collect(),
        environment: vec![
            ("PATH".to_owned(), "/usr/bin".to_owned().into()),
            ("HOME".to_owned(), "/state".to_owned().into()),
        ],
        directory: "/state".to_owned(),
        streams: Streams::Both { errors },
        ..Client::default()
    };
    let state = Mount { source: home.join("workspace"), target: "/state".into(), read_only: false, granted: false };
    let mounts = vec![state, granted(home, "data", true), granted(home, "shared", false)];
    // The engine of node reserves many times the memory that it uses.
    let limits = Limits { address_space_bytes: 64 << 30, launch_ms: 20_000, ..Limits::default() };
    Spec { mounts, system: Some(System::default()), limits, ..spec(home, Role::Client(client)) }
}

/// Runs programs that answer lines, each in the jail of a server, and returns what was heard from each.
async fn server_programs(launcher: &Launcher, home: &Path) -> Value {
    const PYTHON: &str = "import sys\nprint('ready', file=sys.stderr, flush=True)\nfor line in sys.stdin: print(line.strip().upper(), flush=True)";
    const NODE: &str =
        "console.error('ready'); process.stdin.on('data', d => process.stdout.write(String(d).toUpperCase()))";
    let cases: [(&str, &[&str]); 4] = [
        ("cat", &["cat"]),
        ("python", &["python3", "-c", PYTHON]),
        ("node", &["node", "-e", NODE]),
        ("missing", &["no-such-program"]),
    ];
    let mut result = serde_json::Map::new();
    for (name, words) in cases {
        let spec = server(home, words);
        let errors = home.join("workspace/stderr.log");
        let _ = std::fs::remove_file(&errors);
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        let jailed = launcher.launch(spec.clone(), theirs.into()).await.expect("a jail");
        let _ = (&ours).write_all(b"hello\n");
        let mut heard = [0; 16];
        let length = (&ours).read(&mut heard).unwrap_or_default();
        let faults = jailed.report().map(|report| inspect::verify(&report, &spec).err()).unwrap_or_default();
        let _ = ours.shutdown(std::net::Shutdown::Write);
        let exit = jailed.exited().await;
        let told = std::fs::read_to_string(&errors).unwrap_or_default();
        let heard = String::from_utf8_lossy(&heard[..length]).into_owned();
        result.insert(name.into(), json!({ "heard": heard, "faults": faults, "exit": exit, "errors": told }));
    }
    Value::Object(result)
}

/// Makes a layer with one file. The name of its directory contains the separators of mount options.
fn layer(home: &Path) -> PathBuf {
    let layer = home.join("a:layer,with=signs");
    let tools = layer.join("usr/share/of-the-layer");
    std::fs::create_dir_all(&tools).expect("a layer");
    std::fs::write(tools.join("file"), "x").expect("a file");
    layer
}

async fn granted_refusals(launcher: &Launcher, home: &Path, good: &Spec) -> Value {
    let with = |mount: Mount| Spec { mounts: vec![mount], ..good.clone() };
    std::fs::create_dir_all(home.join("way/to/here")).expect("directories");
    let whole = Mount { source: home.join("way/to/here"), ..granted(home, "data", true) };
    let ours = || Spec { role: Role::Noop { program: "/bin/true".into() }, ..with(whole.clone()) };
    let before = refusal(launcher, ours()).await;
    // A directory in the middle of a checked path is replaced by a link.
    std::fs::rename(home.join("way/to"), home.join("way/aside")).expect("renamed");
    std::os::unix::fs::symlink("aside", home.join("way/to")).expect("a link");
    let swapped = refusal(launcher, ours()).await;
    let layered = |layer: PathBuf| Spec { system: Some(System { layer: Some(layer) }), ..good.clone() };
    std::fs::create_dir_all(home.join("linked")).expect("a directory");
    std::os::unix::fs::symlink("/etc", home.join("linked/usr")).expect("a link");
    let mut result = serde_json::Map::new();
    for (name, answer) in [
        ("before", before),
        ("swapped", swapped),
        ("gone", refusal(launcher, with(Mount { source: home.join("gone"), ..whole.clone() })).await),
        ("reserved", refusal(launcher, with(Mount { target: "/usr".into(), ..whole.clone() })).await),
        ("library", refusal(launcher, with(Mount { target: "/libexec".into(), ..whole.clone() })).await),
        ("own", refusal(launcher, with(Mount { target: "/workspace".into(), ..whole.clone() })).await),
        ("no_layer", refusal(launcher, layered(home.join("gone"))).await),
        ("linked_layer", refusal(launcher, layered(home.join("linked"))).await),
        ("relative_layer", refusal(launcher, layered("layer".into())).await),
    ] {
        result.insert(name.into(), answer);
    }
    Value::Object(result)
}

async fn refusal(launcher: &Launcher, spec: Spec) -> Value {
    let (_ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    match launcher.launch(spec, theirs.into()).await {
        Ok(_) => Value::Null,
        Err(error) => json!({ "error": error.to_string(), "remedy": error.remedy() }),
    }
}

async fn bench(launcher: &Launcher, mut spec: Spec) -> Value {
    spec.role = Role::Noop { program: "/bin/true".into() };
    let (mut started, mut ended) = (Vec::new(), Vec::new());
    for _ in 0..200 {
        let (_ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        let begun = Instant::now();
        let jailed = launcher.launch(spec.clone(), theirs.into()).await.expect("a jail");
        started.push(begun.elapsed().as_micros());
        jailed.exited().await;
        ended.push(begun.elapsed().as_micros());
    }
    started.sort();
    ended.sort();
    json!({ "started_us_p50": started[100], "started_us_p99": started[198], "ended_us_p50": ended[100], "ended_us_p99": ended[198] })
}

fn read_all(mut link: UnixStream) -> String {
    let mut text = String::new();
    let _ = link.read_to_string(&mut text);
    text
}
