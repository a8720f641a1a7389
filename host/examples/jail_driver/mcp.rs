//! Scenarios of the driver with MCP servers, as the host starts them.
//!
//! Only for tests. See `host/tests/security/mcp_jail.rs`.

use ironclaw_host::driven::mcp_jail::{self, McpJails, Process};
use ironclaw_jail::launcher::{Exit, Launcher};
use ironclaw_jail::{Identity, Mount};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// Tries each act of its first line, a list of names with expressions, and prints the results by name.
const TRY: &str = r#"
import json, os, socket, subprocess, sys
def connect(family, address):
    with socket.socket(family) as one: one.connect(address)
def write(path):
    with open(path, "w") as file: file.write("x")
def bound(path, family=socket.AF_UNIX):
    one = socket.socket(family)
    one.bind(path); one.listen(); return one
def serve(one):
    with socket.socket(one.family) as other: other.connect(one.getsockname()); one.accept()
def missing(is_missing):
    if is_missing: raise OSError(2, "missing")
def run(act):
    try: eval(act); return "done"
    except OSError as error: return error.strerror
acts = json.loads(sys.stdin.readline())
result = {name: run(act) for name, act in acts.items()}
result["variables"] = sorted(os.environ)
result["directory"] = os.getcwd()
result["descriptors"] = [n for n in range(64) if run(f"os.fstat({n})") == "done"]
print(json.dumps(result), flush=True)
"#;

/// What a browser's jail is asked for, by name. The acts run in the order of their names.
const OF_A_BROWSER: &[(&str, &str)] = &[
    ("shared memory", "write('/dev/shm/x')"),
    ("processors", "open('/proc/cpuinfo').read()[0]"),
    ("policy of Chromium", "json.load(open('/etc/opt/chrome/policies/managed/ironclaw.json'))"),
    ("policy of Firefox", "json.load(open('/etc/firefox/policies/policies.json'))"),
    ("few names of proc", "missing(sorted(os.listdir('/proc')) != ['cpuinfo', 'self'])"),
    ("few names of a process", "missing(set(os.listdir('/proc/self')) - {'exe'} != {'fd', 'task'})"),
    ("no descriptor", "missing(os.listdir('/proc/self/fd'))"),
    (
        "one program",
        "missing(os.path.lexists('/proc/self/exe') and os.readlink('/proc/self/exe') != '/usr/lib/chromium/chromium')",
    ),
    ("empty shared memory", "missing(os.listdir('/dev/shm'))"),
    (
        "more shared memory",
        "(lambda n: os.remove('/dev/shm/y') or missing(n != 257 << 20))(open('/dev/shm/y', 'wb', 0).write(bytes(257 << 20)))",
    ),
    (
        "program in shared memory",
        "(write('/dev/shm/p'), os.chmod('/dev/shm/p', 0o700), subprocess.run(['/dev/shm/p']))",
    ),
    ("other processors", "write('/proc/cpuinfo')"),
    ("other program", "os.symlink('/usr/bin/python3', '/proc/self/exe')"),
    ("other name of a process", "os.mkdir('/proc/self/task/2')"),
    ("other policy", "write('/etc/chromium/policies/managed/ironclaw.json')"),
    ("second policy", "write('/etc/chromium/policies/managed/other.json')"),
    ("own environment", "open('/proc/self/environ')"),
    ("own memory", "open('/proc/self/mem')"),
    ("own addresses", "open('/proc/self/maps')"),
    ("own mounts", "open('/proc/self/mountinfo')"),
    ("own descriptor", "open('/proc/self/fd/0')"),
    ("root of a process", "os.listdir('/proc/self/root')"),
    ("process 1", "open('/proc/1/environ')"),
    ("other process", "open(f'/proc/{os.getpid()}/mem')"),
    ("memory of a process", "missing(__import__('ctypes').CDLL(None).process_vm_readv(os.getpid(), 0, 0, 0, 0, 0))"),
    ("version of the kernel", "open('/proc/version')"),
    ("settings of the kernel", "os.listdir('/proc/sys')"),
    ("file system of processes", "missing(__import__('ctypes').CDLL(None).mount(b'proc', b'/tmp', b'proc', 0, 0))"),
    ("other devices", "open('/dev/tty')"),
    ("kernel", "os.listdir('/sys')"),
    ("bound socket", "bound('/tmp/a')"),
    ("server on a socket", "serve(bound('/tmp/b'))"),
    ("server on a name", "serve(bound(chr(0) + 'c'))"),
    ("server on a port", "serve(bound(('127.0.0.1', 9000), socket.AF_INET))"),
    ("socket of TCP", "socket.socket(socket.AF_INET)"),
    ("socket of UDP", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"),
    ("socket of the kernel", "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)"),
    ("socket in its state", "bound('/state/home/s')"),
    ("socket in a granted directory", "bound('/shared/s')"),
    ("pair of packets", "socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)"),
    (
        "packets to another socket",
        "socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)[0].connect(bound('/tmp/d').getsockname())",
    ),
    ("pair of datagrams", "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)"),
    ("socket of datagrams", "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)"),
    ("file without a name", "os.memfd_create('x')"),
];

/// Starts a child, prints a line, and then ignores the end of its input.
const STAY: &str = "$| = 1; fork || sleep 600; print qq(ready\\n); sleep 600";

pub(super) async fn play(scenario: &str, launcher: &Launcher, home: &Path) -> Value {
    let identity = match nix::unistd::geteuid().is_root() {
        true => Identity::Mapped { uid: 200_001, gid: 200_001 },
        false => Identity::Own,
    };
    let jails = McpJails { launcher: launcher.clone(), identity };
    match scenario {
        "mcp" => attempts(&jails, home).await,
        "mcp-browser" => browser(&jails, home).await,
        "mcp-end" => ends(&jails, home).await,
        "mcp-layer" => with_layer(&jails, home).await,
        other => panic!("no scenario {other}"),
    }
}

fn server(home: &Path, name: &str, program: &[&str]) -> Process {
    let program = program.iter().map(ToString::to_string).collect();
    Process { name: format!("mcp_{name}"), program, state: home.join("servers").join(name), ..Process::default() }
}

fn granted(home: &Path, name: &str, read_only: bool) -> Mount {
    let source = home.join(name);
    std::fs::create_dir(&source).expect("made");
    std::fs::write(source.join("file"), "x").expect("written");
    // Every user must be able to use it, because the jail may run as any uid.
    std::fs::set_permissions(&source, PermissionsExt::from_mode(0o777)).expect("we own it");
    Mount { source, target: format!("/{name}"), read_only, granted: true }
}

/// Makes attempts against the host, a session and another server of the same user.
async fn attempts(jails: &McpJails, home: &Path) -> Value {
    let other = jails.launch(&server(home, "other", &["cat"])).await.expect("another server runs");
    let secret = home.join("servers/other/home/secret");
    let workspace = home.join("workspace");
    std::fs::write(&secret, "x").expect("written");
    std::fs::write(home.join("private"), "x").expect("written");
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = tcp.local_addr().expect("an address").port();
    let name = format!("ironclaw-mcp-{port}");
    let unix = SocketAddr::from_abstract_name(&name).and_then(|address| UnixListener::bind_addr(&address));
    let _unix = unix.expect("an abstract socket");
    let open = |path: &Path| format!("open({:?})", path.display().to_string());
    let acts = json!({
        "network": format!("connect(socket.AF_INET, ('127.0.0.1', {port}))"),
        "names": "socket.getaddrinfo('localhost', 80)",
        "abstract socket": format!("connect(socket.AF_UNIX, chr(0) + '{name}')"),
        "file of the host": open(&home.join("private")),
        "home of the host": format!("os.listdir({:?})", home.display().to_string()),
        "users of the host": "open('/etc/shadow')",
        "state of another server": open(&secret),
        "state of all servers": "os.listdir('/state/../..')",
        "workspace": format!("os.listdir({:?})", workspace.display().to_string()),
        "workspace of a sandbox": "os.listdir('/workspace')",
        "processes": "os.listdir('/proc')",
        "process of another server": format!("open('/proc/{}/environ')", other.jailed.pid),
        "signal to another server": format!("os.kill({}, 9)", other.jailed.pid),
        "program": "write('/usr/bin/x')",
        "root": "write('/x')",
        "granted directory without write": "write('/data/x')",
        "own program": "(write('/state/home/x'), os.chmod('/state/home/x', 0o700), subprocess.run(['/state/home/x']))",
        "own state": "write('/state/home/y')",
        "temporary file": "os.close(__import__('tempfile').mkstemp()[0])",
        "granted file": "open('/data/file')",
        "granted directory": "write('/shared/x')",
        "program of the machine": "subprocess.run(['true'], check=True)",
    });
    let mounts = vec![granted(home, "data", true), granted(home, "shared", false)];
    let environment = vec![("TOKEN".to_owned(), "x".to_owned().into())];
    let wanted = Process { mounts, environment, ..server(home, "one", &["python3", "-c", TRY]) };
    let mut running = jails.launch(&wanted).await.expect("the server runs");
    running.write.write_all(format!("{acts}\n").as_bytes()).await.expect("it reads");
    let mut line = String::new();
    BufReader::new(&mut running.read).read_line(&mut line).await.expect("it writes");
    running.jailed.exited().await;
    let errors = mcp_jail::errors_of(&running.stderr).unwrap_or_default();
    let there = Path::new(&format!("/proc/{}", other.jailed.pid)).exists();
    json!({ "tried": serde_json::from_str::<Value>(&line).unwrap_or_default(), "errors": errors, "other": there })
}

/// Tries what a browser may, in a jail without a listener and then in one with a listener.
async fn browser(jails: &McpJails, home: &Path) -> Value {
    let acts: serde_json::Map<_, _> = OF_A_BROWSER.iter().map(|(name, act)| ((*name).to_owned(), json!(act))).collect();
    let acts = Value::Object(acts);
    let mut tried = Vec::new();
    for (name, listener) in [("one", None), ("two", Some(8129))] {
        let mounts = vec![Mount { target: "/shared".to_owned(), ..granted(home, name, false) }];
        let program = server(home, name, &["python3", "-c", TRY]);
        let wanted = Process { browser: true, listener, mounts, ..program };
        let mut running = jails.launch(&wanted).await.expect("the server runs");
        running.write.write_all(format!("{acts}\n").as_bytes()).await.expect("it reads");
        let mut line = String::new();
        BufReader::new(&mut running.read).read_line(&mut line).await.expect("it writes");
        running.jailed.exited().await;
        tried.push(serde_json::from_str::<Value>(&line).unwrap_or_default());
    }
    json!(tried)
}

/// Ends servers in each way, and returns the processes that are left.
async fn ends(jails: &McpJails, home: &Path) -> Value {
    let running = jails.launch(&server(home, "cat", &["cat"])).await.expect("it runs");
    drop((running.read, running.write));
    let closed = running.jailed.exited().await;
    let mut running = jails.launch(&server(home, "stay", &["perl", "-e", STAY])).await.expect("it runs");
    let mut line = String::new();
    BufReader::new(&mut running.read).read_line(&mut line).await.expect("it writes");
    let children = format!("/proc/{0}/task/{0}/children", running.jailed.pid);
    let child = std::fs::read_to_string(children).unwrap_or_default().trim().to_owned();
    let pids = [running.jailed.init_pid.to_string(), running.jailed.pid.to_string(), child];
    running.jailed.kill();
    let killed = running.jailed.exited().await;
    let left: Vec<_> = pids.iter().filter(|pid| pid.is_empty() || Path::new("/proc").join(pid).exists()).collect();
    let failed = |result: Result<_, mcp_jail::Error>| result.map(drop).map_err(|error| error.to_string()).err();
    json!({
        "closed": closed, "killed": killed, "left": left, "line": line,
        "missing": failed(jails.launch(&server(home, "none", &["no-such-program"])).await),
        "state": home.join("servers/none").exists(),
    })
}

/// Runs a program of a layer, which has the files of the layer and of the machine.
async fn with_layer(jails: &McpJails, home: &Path) -> Value {
    let layer = home.join("layer");
    let tool = layer.join("usr/bin/tool-of-the-layer");
    std::fs::create_dir_all(layer.join("usr/bin")).expect("made");
    // Another process writes the script: a file that this one writes could remain open in a fork.
    let script = "printf '#!/bin/sh\nread line\necho \"heard $line\"\n' > \"$0\" && chmod 755 \"$0\"";
    let made = process::Command::new("sh").arg("-c").arg(script).arg(&tool).status();
    assert!(made.is_ok_and(|made| made.success()));
    for directory in ["layer", "layer/usr", "layer/usr/bin"] {
        let path: PathBuf = home.join(directory);
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("we own it");
    }
    let wanted = Process { layer: Some(layer), ..server(home, "layered", &["tool-of-the-layer"]) };
    let mut running = jails.launch(&wanted).await.expect("it runs");
    running.write.write_all(b"hello\n").await.expect("it reads");
    let mut line = String::new();
    BufReader::new(&mut running.read).read_line(&mut line).await.expect("it writes");
    json!({ "line": line, "exit": running.jailed.exited().await == Exit::Code(0) })
}
