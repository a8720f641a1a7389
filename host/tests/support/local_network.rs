//! A local network for tests: this process runs again in a network namespace and a mount namespace of its own, with a pair of interfaces
//! to a second namespace, in which servers have private addresses.
//!
//! Only root can make it. The names of the network are in an `/etc/hosts` that a test writes again at any time.

use super::needs::{needs, needs_root};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// Set in the process inside, to the path of the file behind `/etc/hosts`.
const INSIDE: &str = "IRONCLAW_TEST_LOCAL_NETWORK";

/// The address of the machine that runs the host.
pub(crate) const OWN: &str = "10.77.0.1";
/// The addresses of the other machine.
pub(crate) const OTHERS: [&str; 4] = ["10.77.0.7", "10.77.0.8", "192.168.77.9", "fd77::7"];

type Job = Box<dyn FnOnce() + Send>;

/// The network, with a thread on its other machine.
pub(crate) struct LocalNetwork {
    jobs: Sender<Job>,
    hosts: PathBuf,
}

impl LocalNetwork {
    /// Runs a test again inside, and returns the network there; `None` outside, once the test passed inside.
    pub(crate) fn enter(test: &str) -> Option<Self> {
        needs("ip");
        needs("mount");
        needs("unshare");
        needs_root();
        if let Some(hosts) = std::env::var_os(INSIDE) {
            return Some(Self::make(hosts.into()));
        }
        let file = tempfile::NamedTempFile::new().expect("a file");
        // The host of a test by root is another user.
        std::fs::set_permissions(file.path(), Permissions::from_mode(0o644)).expect("own file");
        let own = std::env::current_exe().expect("a program");
        let script = r#"mount --bind "$1" /etc/hosts && exec "$2" --exact "$3" --nocapture"#;
        let mut command = Command::new("unshare");
        command.args(["--mount", "--net", "--fork", "sh", "-c", script, "sh"]);
        let output = command.arg(file.path()).arg(own).arg(test).env(INSIDE, file.path()).output();
        let output = output.expect("unshare runs");
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        None
    }

    fn make(hosts: PathBuf) -> Self {
        let (jobs, wanted) = channel::<Job>();
        let (send_id, id) = channel();
        thread::spawn(move || {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).expect("a network namespace");
            send_id.send(nix::unistd::gettid().to_string()).expect("the test waits");
            wanted.into_iter().for_each(|job| job());
        });
        let other = id.recv().expect("a namespace");
        ip(&["link", "set", "lo", "up"]);
        ip(&["link", "add", "near", "type", "veth", "peer", "name", "far", "netns", &other]);
        for address in [&format!("{OWN}/16"), "192.168.77.1/24", "fd77::1/64"] {
            ip(&["address", "add", address, "dev", "near", "nodad"]);
        }
        ip(&["link", "set", "near", "up"]);
        let network = Self { jobs, hosts };
        network.there(|| {
            ip(&["link", "set", "lo", "up"]);
            for (address, bits) in OTHERS.iter().zip(["16", "16", "24", "64"]) {
                ip(&["address", "add", &format!("{address}/{bits}"), "dev", "far", "nodad"]);
            }
            ip(&["link", "set", "far", "up"]);
        });
        network.name(&[]);
        network
    }

    /// Does something on the other machine.
    pub(crate) fn there<T: Send + 'static>(&self, act: impl FnOnce() -> T + Send + 'static) -> T {
        let (send, done) = channel();
        self.jobs.send(Box::new(move || send.send(act()).expect("the test waits"))).expect("a thread");
        done.recv().expect("it does not panic")
    }

    /// Gives names these addresses, and no others.
    pub(crate) fn name(&self, names: &[(&str, &str)]) {
        let lines: String = names.iter().map(|(name, address)| format!("{address} {name}\n")).collect();
        std::fs::write(&self.hosts, format!("127.0.0.1 localhost\n{lines}")).expect("written");
    }
}

fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().expect("ip runs");
    assert!(output.status.success(), "ip {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}
