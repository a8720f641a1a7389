//! One run of a client or an unpacker of the machine in a jail of its own, with its output and a time limit.
//!
//! The jail has no state or environment of the host, and a network only for a client that fetches. See [`ironclaw_jail::client`].

use super::error::Error;
use super::work_dir::{FetchContext, WorkDir, set_mode};
use crate::registry::live_settings::packages::{Config, PROGRAMS};
use ironclaw_jail::client::{BindMount, Client, Kind, Network, Streams};
use ironclaw_jail::launcher::Exit;
use ironclaw_jail::system::Names;
use ironclaw_jail::{Identity, Limits, Mount, Role, Spec};
use ironclaw_operator::DenialCode;
use ironclaw_store::refusal::Refusal;
use ironclaw_text::confusable;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

/// Directory in its jail that a client may write.
pub(super) const WORK: &str = "/work";
/// Most bytes of a client's output that are kept, from its end.
const OUTPUT_BYTES_MAX: usize = 16 * 1024;
/// Most bytes of it that a message shows.
const SHOWN_BYTES_MAX: usize = 600;
/// Shortest interval between two measurements of a client's files.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A measurement is followed by a pause of this many times its duration, so that a large tree does not cost all the time.
const LOOK_REST_FACTOR: u32 = 10;
/// Factor by which fetching may take more space than a layer: archives, indexes and unpacked files.
const ROOM_FACTOR: u64 = 3;
/// Least space for fetching: even the smallest layer needs indexes.
const ROOM_BYTES_MIN: u64 = 1 << 30;

/// Files for a client in place of the machine's own, which may name sockets that its jail does not have.
const OWN_FILES: [(&str, &str); 3] = [
    ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n"),
    ("passwd", "client:x:1000:1000::/work:/usr/sbin/nologin\n"),
    ("group", "client:x:1000:\n"),
];

/// Settings of the machine that a client reads if they exist: name resolution, certificates, alternatives. None of them holds a password;
/// the operator shows clients the sources that need one.
const SETTINGS: [&str; 11] = [
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/services",
    "/etc/protocols",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/crypto-policies",
];
const DEVICES: [&str; 4] = ["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"];

/// Returns the files and directories of the machine that clients see.
pub(super) fn shown() -> impl Iterator<Item = &'static str> {
    std::iter::once(PROGRAMS).chain(SETTINGS)
}

/// Returns the links around `/usr`. Packages are unpacked below `/usr`, which is right only if `/bin` and the like link there.
pub(super) fn names_around_usr(root: &Path) -> Result<Names, Refusal> {
    let no = |error| {
        Refusal::new(DenialCode::PackagesNotMerged, format!("packages do not fit this machine, because {error}"))
    };
    Names::read(root).map_err(|error| no(error).hint("install the package usrmerge"))
}

/// A program to run, with its description for people.
pub(super) struct Task<'a> {
    pub(super) program: &'a Path,
    pub(super) args: Vec<String>,
    pub(super) environment: Vec<(&'a str, String)>,
    /// True if it needs the network.
    pub(super) network: bool,
    /// Files that it reads besides the settings.
    pub(super) bind_mounts: Vec<BindMount>,
    /// Its purpose, for a refusal: `fetch packages of apt`.
    pub(super) what: &'a str,
}

/// Runs a program and returns the end of its output.
///
/// # Errors
/// Refuses a failed, late or overfull run, with the output.
pub(super) async fn run(context: &FetchContext, work_dir: &WorkDir, task: Task<'_>) -> Result<String, Error> {
    let mut said = Vec::new();
    let take = |bytes: &[u8]| {
        said.extend_from_slice(bytes);
        if said.len() > 2 * OUTPUT_BYTES_MAX {
            said.drain(..said.len() - OUTPUT_BYTES_MAX);
        }
        Ok(())
    };
    let what = task.what.to_owned();
    let exit = follow(context, work_dir, task, take).await?;
    let said = String::from_utf8_lossy(&said).into_owned();
    match exit {
        Exit::Code(0) => Ok(said),
        Exit::Code(_) | Exit::Signal(_) => Err(failed(&what, exit, &said)),
    }
}

/// Runs a program and passes its output to `take`; an error of `take` ends the run.
pub(super) async fn follow(
    context: &FetchContext,
    work_dir: &WorkDir,
    task: Task<'_>,
    mut take: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<Exit, Error> {
    let spec = spec(context, work_dir, &task)?;
    let (ours, theirs) = io::pipe().map_err(Error::io(&work_dir.path))?;
    let mut output = pipe::Receiver::from_owned_fd(ours.into()).map_err(Error::io(&work_dir.path))?;
    let jailed = context.launcher.launch(spec, theirs.into()).await?;
    let talk = async {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            match output.read(&mut buffer).await.map_err(Error::io(&work_dir.path))? {
                0 => return Ok(jailed.exited().await),
                length => take(&buffer[..length])?,
            }
        }
    };
    let work = work_dir.work();
    let ended = tokio::select! {
        exit = talk => exit,
        () = tokio::time::sleep_until(work_dir.until) => {
            let seconds = context.config.fetch_seconds_max;
            let message = format!("cannot {}: fetching took longer than {seconds} seconds in all", task.what);
            let hint = "raise packages.fetch_seconds_max if the network is slow";
            Err(Refusal::new(DenialCode::PackagesLate, message).hint(hint).into())
        }
        full = overfull(&work, room(&context.config), context.config.layer_files_max) => Err(full),
    };
    if ended.is_err() {
        // No process writes there after we return.
        jailed.kill();
        jailed.exited().await;
    }
    ended
}

fn room(config: &Config) -> u64 {
    config.layer_bytes_max.saturating_mul(ROOM_FACTOR).max(ROOM_BYTES_MIN)
}

/// Returns when the directory holds more than fetching may take.
async fn overfull(work: &Path, bytes_max: u64, files_max: u64) -> Error {
    let mut rest = LOOK_EVERY;
    loop {
        tokio::time::sleep(rest).await;
        let directory = work.to_owned();
        let begun = Instant::now();
        // If it cannot be counted, only the time limit applies.
        let (bytes, files) = tokio::task::spawn_blocking(move || size(&directory)).await.unwrap_or_default();
        rest = begun.elapsed().saturating_mul(LOOK_REST_FACTOR).max(LOOK_EVERY);
        if bytes > bytes_max || files > files_max.saturating_mul(ROOM_FACTOR) {
            let message = format!("fetching takes more room than allowed: {bytes} bytes in {files} files");
            return Refusal::new(DenialCode::PackagesTooLarge, message).hint("see packages.layer_bytes_max").into();
        }
    }
}

/// Returns bytes and entries below a directory, as far as they are visible while a client writes.
pub(super) fn size(directory: &Path) -> (u64, u64) {
    let (mut bytes, mut files, mut open) = (0, 0, vec![directory.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            (bytes, files) = (bytes + found.len(), files + 1);
            if found.is_dir() {
                open.push(entry.path());
            }
        }
    }
    (bytes, files)
}

/// Returns the refusal for a failed client, with the end of its output, without control and invisible characters.
pub(super) fn failed(what: &str, exit: Exit, said: &str) -> Error {
    // Prefers the lines that the clients mark as errors.
    let error = |line: &&str| {
        ["E: ", "npm error ", "npm ERR! ", "dpkg-deb: error", "ERROR: "].iter().any(|begins| line.starts_with(begins))
    };
    let errors: Vec<&str> = said.lines().filter(error).filter(|line| !line.contains("log of this run")).collect();
    let said = if errors.is_empty() { said.to_owned() } else { errors.join(" ") };
    let plain: String =
        said.chars().map(|c| if c.is_control() || confusable::is_unseen(c) { ' ' } else { c }).collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    let mut shown = words.join(" ");
    if shown.len() > SHOWN_BYTES_MAX {
        let cut = shown.ceil_char_boundary(shown.len() - SHOWN_BYTES_MAX);
        shown = format!("… {}", &shown[cut..]);
    }
    let message = format!("cannot {what}: the client {exit}: {shown}");
    Refusal::new(DenialCode::PackagesClientFailed, message).into()
}

fn spec(context: &FetchContext, work_dir: &WorkDir, task: &Task<'_>) -> Result<Spec, Error> {
    let config = &context.config;
    let mut bind_mounts =
        vec![BindMount { source: PROGRAMS.into(), target: PROGRAMS.to_owned(), kind: Kind::Programs }];
    let told =
        |(name, _)| BindMount { source: work_dir.etc().join(name), target: format!("/etc/{name}"), kind: Kind::Data };
    bind_mounts.extend(OWN_FILES.map(told));
    if task.network {
        bind_mounts.extend(existing(&SETTINGS));
    }
    bind_mounts.extend(DEVICES.into_iter().map(|path| BindMount { kind: Kind::Device, ..data(path) }));
    bind_mounts.extend(task.bind_mounts.iter().cloned());
    let mut environment: Vec<(String, String)> = vec![
        ("PATH".to_owned(), "/usr/sbin:/usr/bin".to_owned()),
        ("HOME".to_owned(), format!("{WORK}/home")),
        ("TMPDIR".to_owned(), format!("{WORK}/tmp")),
        ("LC_ALL".to_owned(), "C.UTF-8".to_owned()),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
    ];
    if let (true, Some(proxy)) = (task.network, &config.proxy) {
        for name in ["http_proxy", "https_proxy", "HTTPS_PROXY", "HTTP_PROXY"] {
            environment.push((name.to_owned(), proxy.clone()));
        }
    }
    environment.extend(task.environment.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    let links = names_around_usr(Path::new("/"))?.links.into_iter();
    let links = links.map(|(name, target)| (name, target.to_string_lossy().into_owned())).collect();
    let client = Client {
        program: task.program.to_string_lossy().into_owned(),
        args: task.args.clone(),
        environment: environment.into_iter().map(|(name, value)| (name, value.into())).collect(),
        directory: WORK.to_owned(),
        bind_mounts,
        links,
        network: task.network.then(|| Network { ports: config.all_ports() }),
        streams: Streams::Output,
        browser: false,
    };
    let mounts = vec![Mount { source: work_dir.work(), target: WORK.to_owned(), read_only: false, granted: false }];
    let limits = Limits { file_bytes: room(config), ..Limits::for_programs() };
    Ok(Spec {
        name: "packages".to_owned(),
        role: Role::Client(client),
        mounts,
        system: None,
        listener: None,
        identity: context.identity,
        limits,
    })
}

/// Returns mounts of those files that exist, each at its own path.
pub(super) fn existing(paths: &[&str]) -> impl Iterator<Item = BindMount> {
    paths.iter().filter(|path| Path::new(path).exists()).map(|path| data(path))
}

fn data(path: &str) -> BindMount {
    BindMount { source: path.into(), target: path.to_owned(), kind: Kind::Data }
}

/// Writes a file that the client reads.
pub(super) fn put(path: &Path, text: &str) -> Result<PathBuf, Error> {
    fs::write(path, text).map_err(Error::io(path))?;
    set_mode(path, 0o644)?;
    Ok(path.to_owned())
}

/// Creates the files and directories that every client has.
pub(super) fn create_common_files(context: &FetchContext, work_dir: &WorkDir) -> Result<(), Error> {
    for (name, text) in OWN_FILES {
        put(&work_dir.etc().join(name), text)?;
    }
    create_owned(context, &work_dir.work())?;
    create_writable(context, work_dir, &["home", "tmp"])
}

/// Creates a directory that the client owns.
fn create_owned(context: &FetchContext, path: &Path) -> Result<(), Error> {
    ironclaw_state::home::make_private(path)?;
    // Clears a set-gid bit that it may inherit from the directory above.
    set_mode(path, 0o700)?;
    if let Identity::Mapped { uid, gid } = context.identity {
        std::os::unix::fs::lchown(path, Some(uid), Some(gid)).map_err(Error::io(path))?;
    }
    Ok(())
}

/// Creates directories that the client writes to.
pub(super) fn create_writable(context: &FetchContext, work_dir: &WorkDir, names: &[&str]) -> Result<(), Error> {
    for name in names {
        let mut path = work_dir.work();
        for part in name.split('/') {
            path.push(part);
            create_owned(context, &path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_removed_from_client_output() {
        let error =
            failed("fetch packages of npm", Exit::Code(1), "npm error 404\u{1b}[2K a\u{202e}b\u{200b}c\u{e0041}d\n");
        assert!(error.to_string().ends_with(": npm error 404 [2K a b c d"), "{error}");
    }

    #[test]
    fn only_the_client_of_apt_sees_files_with_passwords_of_apt() {
        let shown: Vec<_> = SETTINGS.iter().filter(|path| Path::new(path).starts_with("/etc/apt")).collect();
        assert_eq!(shown, Vec::<&&str>::new());
        assert!(SETTINGS.iter().all(|path| path.starts_with("/etc/") && !Path::new("/etc/apt").starts_with(path)));
    }

    #[test]
    fn a_machine_whose_programs_are_not_all_below_usr_is_refused() {
        let root = tempfile::tempdir().expect("a temporary directory");
        std::os::unix::fs::symlink("usr/lib", root.path().join("lib")).expect("linked");
        let names = names_around_usr(root.path()).expect("merged");
        assert_eq!(names.links, [("lib".to_owned(), PathBuf::from("usr/lib"))]);
        std::os::unix::fs::symlink("opt/lib64", root.path().join("lib64")).expect("linked");
        let refusal = names_around_usr(root.path()).expect_err("refused");
        assert!(refusal.message.contains("because /lib64 leads to opt/lib64"), "{refusal}");
        std::fs::create_dir(root.path().join("bin")).expect("made");
        let refusal = names_around_usr(root.path()).expect_err("refused");
        assert_eq!(refusal.code, DenialCode::PackagesNotMerged);
        assert!(refusal.message.contains("because /bin is no link into /usr"), "{refusal}");
    }
}
