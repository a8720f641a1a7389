//! The files that a browser expects in its jail: shared memory, a few names of `/proc`, and settings of the host.
//!
//! No other jail has them, and no jail has a procfs. The policy switches off the encryption of server names (ECH), so that the host reads
//! the name in each tunnel. See `crate::native::browser_mounts`, which makes them.

use crate::Limits;

/// The directory in the root with the names of procfs that Chromium needs.
pub(crate) const PROC: &str = "proc";
/// The description of the processors: a copy of the beginning of that of the machine.
pub(crate) const CPUINFO: &str = "proc/cpuinfo";
/// Bytes of the copy. Each processor has about 1.5 KiB, and programs read the first one.
pub(crate) const CPUINFO_BYTES_MAX: usize = 8 * 1024;
/// Shared memory, private to the jail.
pub(crate) const SHARED_MEMORY: &str = "dev/shm";
/// Room in shared memory: bytes and inodes. Its pages count as memory of the jail.
pub const SHARED_MEMORY_ROOM: (u64, u64) = (256 << 20, 4096);

/// The directories of these files, in the order in which they are made. Chromium opens `self/fd`, where each process sees no
/// descriptor, and its process for graphics counts its threads by the directories in `self/task`.
pub(crate) const DIRECTORIES: [&str; 12] = [
    "etc/chromium",
    "etc/chromium/policies",
    "etc/chromium/policies/managed",
    "etc/chromium.d",
    "etc/firefox",
    "etc/firefox/policies",
    "etc/opt",
    "proc",
    "proc/self",
    "proc/self/fd",
    "proc/self/task",
    "proc/self/task/1",
];
/// The policies and settings, each with its file.
pub(crate) const FILES: [(&str, &str); 3] = [
    (STARTER_SETTINGS, STARTER),
    (
        "etc/chromium/policies/managed/ironclaw.json",
        "{\"EncryptedClientHelloEnabled\": false, \"BuiltInDnsClientEnabled\": false, \"DnsOverHttpsMode\": \"off\"}\n",
    ),
    (
        "etc/firefox/policies/policies.json",
        "{\"policies\": {\"DisableEncryptedClientHello\": true, \"DNSOverHTTPS\": {\"Enabled\": false}}}\n",
    ),
];
/// Links to the directory of policies, for builds of Chromium with another name.
pub(crate) const LINKS: [(&str, &str); 1] = [("etc/opt/chrome", "../chromium")];
/// The program of Chromium in the root, and the link by which it finds itself and starts its processes.
pub(crate) const CHROMIUM: (&str, &str) = ("usr/lib/chromium/chromium", "proc/self/exe");

/// What Debian's starter `/usr/bin/chromium` reads before it starts the program.
const STARTER_SETTINGS: &str = "etc/chromium.d/ironclaw";
/// The jail is the sandbox: it forbids the namespaces of Chromium's own. It also forbids to set capabilities, with which the zygote begins
/// each of its copies, so Chromium starts each process anew. The handler of crashes would start its parent again, because it finds itself
/// by the link too. Drivers tell Chromium to share memory in files of its temporary directory, so this directory is the larger one. The
/// socket that Chromium binds is there too.
const STARTER: &str = "\
export TMPDIR=/dev/shm
export CHROMIUM_FLAGS=\"--no-sandbox --no-zygote --disable-crashpad-for-testing\"
if [ -n \"$https_proxy\" ]; then
    export CHROMIUM_FLAGS=\"$CHROMIUM_FLAGS --proxy-server=$https_proxy --proxy-bypass-list=<-loopback>\"
fi
";

impl Limits {
    /// Returns limits for a browser, which has many processes and threads.
    pub fn for_browsers() -> Self {
        Self {
            // Its engines reserve a terabyte of addresses that they never use. With 64 GiB, Chromium does not start.
            address_space_bytes: 4 << 40,
            open_files: 4096,
            processes: 512,
            ..Self::for_programs()
        }
    }
}

/// Returns the beginning of the description of the processors, whole processors only if there is one.
pub(crate) fn cpuinfo(whole: &str) -> &str {
    let mut end = whole.len().min(CPUINFO_BYTES_MAX);
    while !whole.is_char_boundary(end) {
        end -= 1;
    }
    let start = &whole[..end];
    match start.rfind("\n\n") {
        Some(gap) => &start[..gap + 2],
        None => start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_of_the_processors_is_bounded_and_has_whole_ones() {
        let one = |n: usize| format!("processor\t: {n}\nflags\t\t: {}\n\n", "sse3 ".repeat(200));
        let all: String = (0..64).map(one).collect();
        let copy = cpuinfo(&all);
        assert!(copy.len() <= CPUINFO_BYTES_MAX && copy.ends_with("\n\n") && copy.starts_with("processor\t: 0"));
        assert_eq!(cpuinfo(&one(0)), one(0));
        assert_eq!(cpuinfo("processor : 0"), "processor : 0");
    }

    #[test]
    fn policies_are_json_that_switches_ech_off() {
        let read = |at: usize| serde_json::from_str::<serde_json::Value>(FILES[at].1).expect("JSON");
        assert_eq!(read(1)["EncryptedClientHelloEnabled"], false);
        assert_eq!(read(2)["policies"]["DisableEncryptedClientHello"], true);
    }
}
