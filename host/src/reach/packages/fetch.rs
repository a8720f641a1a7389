//! Fetching with apt and npm.
//!
//! Neither installs anything: apt downloads archives, npm unpacks into a directory of its own and runs no script. See `reach::packages::unpack`.

use super::client::{Task, WORK, create_writable, existing, put, run};
use super::error::{Error, unfit};
use super::source::{Place, Source};
use super::work_dir::{FetchContext, WorkDir, set_mode};
use crate::registry::software::npm_parts;
use ironclaw_jail::client::{BindMount, Kind};
use ironclaw_operator::DenialCode;
use ironclaw_state::home::make_private;
use ironclaw_store::refusal::Refusal;
use std::fs;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// apt's list of the machine's own packages.
pub(super) const STATUS: &str = "/var/lib/dpkg/status";
/// Archives for one change.
const ARCHIVES_MAX: usize = 2_000;
/// Bytes of a package's manifest; npm's own limit is larger than any manifest in use.
const MANIFEST_BYTES_MAX: u64 = 4 << 20;

/// Usual files of the certificates that a machine trusts.
pub(crate) const ROOTS: [&str; 2] = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// The machine's settings of apt, without `auth.conf`. Since the others may hold passwords too, only the client for apt sees them.
pub(super) const APT_SETTINGS: [&str; 10] = [
    "/etc/apt/apt.conf",
    "/etc/apt/apt.conf.d",
    "/etc/apt/sources.list",
    "/etc/apt/sources.list.d",
    "/etc/apt/preferences",
    "/etc/apt/preferences.d",
    "/etc/apt/trusted.gpg",
    "/etc/apt/trusted.gpg.d",
    "/etc/apt/keyrings",
    "/etc/debian_version",
];

/// An archive that apt downloaded.
#[derive(Debug)]
pub(super) struct Archive {
    /// Its name below the directory of archives.
    pub(super) file: String,
    /// `name=version`
    pub(super) name: String,
}

/// Directory of the archives, below the client's work directory.
pub(super) const ARCHIVES: &str = "apt/archives";

/// Fetches packages with the dependencies that this machine does not have.
pub(super) async fn apt(context: &FetchContext, work_dir: &WorkDir, names: &[String]) -> Result<Vec<Archive>, Error> {
    create_writable(context, work_dir, &["apt/lists/partial", "apt/archives/partial", "apt/log", "apt/lib"])?;
    let bind_mounts = apt_settings(context, work_dir)?;
    let task = |args: Vec<String>, what| Task {
        program: context.config.apt(),
        args,
        environment: vec![
            ("APT_CONFIG", "/etc/apt/first.conf".to_owned()),
            ("DEBIAN_FRONTEND", "noninteractive".to_owned()),
        ],
        network: true,
        bind_mounts: bind_mounts.clone(),
        what,
    };
    // Without this option apt would ignore a failed index and use an old one; here there is no old one.
    let update = ["-q", "-o", "APT::Update::Error-Mode=any", "update"].map(str::to_owned).to_vec();
    run(context, work_dir, task(update, "read the index of apt")).await?;
    let options =
        ["-q", "-y", "--download-only", "--reinstall", "--no-install-recommends", "--no-remove", "install", "--"];
    let install = options.into_iter().map(str::to_owned).chain(names.iter().cloned()).collect();
    run(context, work_dir, task(install, "fetch packages of apt")).await?;
    let archives = archives(&work_dir.work().join(ARCHIVES))?;
    // apt reads an unknown name as a pattern, and resolves a virtual name to a provider. Neither was approved.
    let fetched = |name: &String| archives.iter().any(|archive| archive.name.split('=').next() == Some(name));
    match names.iter().find(|name| !fetched(name)) {
        Some(name) => {
            let message = format!("apt did not fetch a package of the name {name:?}");
            let hint = "it is an alias, or this machine has a version that no source offers";
            Err(Refusal::new(DenialCode::PackagesUnknown, message).hint(hint).into())
        }
        None => Ok(archives),
    }
}

/// Returns the settings of apt in the jail: the first file locates the others, and the last one has precedence.
fn apt_settings(context: &FetchContext, work_dir: &WorkDir) -> Result<Vec<BindMount>, Error> {
    let etc = work_dir.etc();
    let first = "Dir::Etc::main \"last.conf\";\n";
    let mut last = String::new();
    if Path::new("/etc/apt/apt.conf").exists() {
        last.push_str("#include \"/etc/apt/apt.conf\";\n");
    }
    // The machine's hooks for its own updates do not apply.
    for hooks in ["APT::Update", "DPkg::Pre-Invoke", "DPkg::Post-Invoke", "DPkg::Pre-Install-Pkgs", "APT::Install"] {
        last.push_str(&format!("#clear {hooks};\n"));
    }
    last.push_str(&format!(
        "APT::Sandbox::User \"\";\nAPT::Get::AllowUnauthenticated \"false\";\nAcquire::AllowInsecureRepositories \"false\";\n\
         Acquire::AllowDowngradeToInsecureRepositories \"false\";\nAcquire::Languages \"none\";\nAcquire::PDiffs \"false\";\n\
         Acquire::Retries \"2\";\nDir::State \"{WORK}/apt/lib\";\nDir::State::lists \"{WORK}/apt/lists\";\n\
         Dir::State::status \"{STATUS}\";\nDir::State::extended_states \"{WORK}/apt/lib/extended_states\";\n\
         Dir::Cache \"{WORK}/apt\";\nDir::Cache::archives \"{WORK}/{ARCHIVES}\";\nDir::Cache::pkgcache \"\";\n\
         Dir::Cache::srcpkgcache \"\";\nDir::Log \"{WORK}/apt/log\";\nDir::Bin::dpkg \"/usr/bin/dpkg\";\n\
         Binary::apt-get::APT::Keep-Downloaded-Packages \"true\";\nAPT::Keep-Downloaded-Packages \"true\";\n"
    ));
    let mut bind_mounts = vec![data_mount(STATUS.into(), STATUS)];
    bind_mounts.extend(existing(&APT_SETTINGS));
    if let Some(file) = &context.config.apt_sources {
        let text = fs::read_to_string(file).map_err(Error::io(file))?;
        let own = etc.join("own.d");
        make_private(&own)?;
        set_mode(&own, 0o755)?;
        put(&own.join(format!("own.{}", file.extension().unwrap_or_default().to_string_lossy())), &text)?;
        bind_mounts.push(data_mount(own, "/etc/apt/own.d"));
        last.push_str("Dir::Etc::sourcelist \"own.list.none\";\nDir::Etc::sourceparts \"own.d\";\n");
    }
    bind_mounts.push(data_mount(put(&etc.join("first.conf"), first)?, "/etc/apt/first.conf"));
    bind_mounts.push(data_mount(put(&etc.join("last.conf"), &last)?, "/etc/apt/last.conf"));
    Ok(bind_mounts)
}

fn data_mount(source: PathBuf, target: &str) -> BindMount {
    BindMount { source, target: target.to_owned(), kind: Kind::Data }
}

/// Returns the archives that apt downloaded, under its own names for them.
fn archives(directory: &Path) -> Result<Vec<Archive>, Error> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(Error::io(directory))? {
        let entry = entry.map_err(Error::io(directory))?;
        let Some(file) = entry.file_name().to_str().map(str::to_owned) else { continue };
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        let Some(stem) = file.strip_suffix(".deb").filter(|_| is_file) else { continue };
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"_+.-%~".contains(&b);
        let (Some((name, rest)), true) = (stem.split_once('_'), stem.bytes().all(plain)) else {
            return Err(unfit(format!("apt fetched {file:?}, which is not the name of an archive")));
        };
        let version = rest.rsplit_once('_').map_or(rest, |(version, _)| version).replace("%3a", ":");
        found.push(Archive { name: format!("{name}={version}"), file });
    }
    if found.len() > ARCHIVES_MAX {
        return Err(unfit(format!("{} archives are more than {ARCHIVES_MAX}", found.len())));
    }
    found.sort_by(|one, other| one.file.cmp(&other.file));
    Ok(found)
}

/// Fetches packages with their dependencies into a directory of their own.
pub(super) async fn npm(
    context: &FetchContext,
    work_dir: &WorkDir,
    names: &[String],
) -> Result<(Source, Vec<String>), Error> {
    create_writable(context, work_dir, &["npm/lib", "npm-cache"])?;
    let mut args = vec!["install".to_owned(), "--global".to_owned()];
    args.extend(["--no-audit", "--no-fund", "--install-links=true"].map(str::to_owned));
    args.push(format!("--prefix={WORK}/npm"));
    run(context, work_dir, npm_task(context, args, names, "fetch packages of npm")).await?;
    let root = work_dir.work().join("npm");
    let bare = names.iter().map(|name| npm_parts(name).0);
    let fetched = bare.map(|name| Ok(format!("{name}={}", version(&root, name)?)));
    let fetched = fetched.collect::<Result<_, Error>>()?;
    Ok((Source { root, place: Place::Prefix, name: "npm".to_owned() }, fetched))
}

/// Returns a run of npm with these words, and these names at its end.
fn npm_task<'a>(context: &'a FetchContext, mut args: Vec<String>, names: &[String], what: &'a str) -> Task<'a> {
    // Runs no script of a package, not even to build a git dependency, and no git.
    args.extend(["--ignore-scripts", "--git=/usr/bin/false", "--no-update-notifier"].map(str::to_owned));
    // A refused port remains refused: one early retry. The time limit of the whole fetch bounds the rest.
    args.extend(
        ["--fetch-retries=1", "--fetch-retry-mintimeout=500", "--fetch-retry-maxtimeout=2000", "--fetch-timeout=60000"]
            .map(str::to_owned),
    );
    args.extend(["--no-progress", "--loglevel=warn"].map(str::to_owned));
    args.push(format!("--cache={WORK}/npm-cache"));
    args.push(format!("--userconfig={WORK}/home/none"));
    args.push(format!("--globalconfig={WORK}/home/none-either"));
    if let Some(registry) = &context.config.npm_registry {
        args.push(format!("--registry={registry}"));
    }
    args.push("--".to_owned());
    args.extend(names.iter().cloned());
    let mut environment = vec![("NODE_OPTIONS", "--max-old-space-size=1024".to_owned())];
    // npm has roots of its own, and the machine may trust further ones.
    if let Some(roots) = ROOTS.into_iter().find(|file| Path::new(file).is_file()) {
        environment.push(("NODE_EXTRA_CA_CERTS", roots.to_owned()));
    }
    Task { program: context.config.npm(), args, environment, network: true, bind_mounts: Vec::new(), what }
}

/// Returns a field of a package in the registry of npm; null if the package has none.
pub(super) async fn npm_view(
    context: &FetchContext,
    work_dir: &WorkDir,
    package: &str,
    field: &str,
) -> Result<serde_json::Value, Error> {
    create_writable(context, work_dir, &["npm-cache"])?;
    let args = vec!["view".to_owned(), "--json".to_owned()];
    let names = [package.to_owned(), field.to_owned()];
    let said = run(context, work_dir, npm_task(context, args, &names, "read a package of npm")).await?;
    // Warnings precede the answer.
    let begin = said.find(|first: char| ['{', '[', '"'].contains(&first));
    let Some(begin) = begin else { return Ok(serde_json::Value::Null) };
    let mut values = serde_json::Deserializer::from_str(&said[begin..]).into_iter::<serde_json::Value>();
    let unread = || unfit(format!("npm says something unreadable about {package:?}"));
    values.next().and_then(Result::ok).ok_or_else(unread)
}

/// Returns the version in a package's manifest.
fn version(root: &Path, name: &str) -> Result<String, Error> {
    let path = root.join("lib/node_modules").join(name).join("package.json");
    let none = |why: &str| unfit(format!("npm fetched {name:?} and {why}"));
    let mut options = fs::OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(&path);
    let file = file.map_err(|error| none(&format!("its manifest cannot be read: {error}")))?;
    let mut text = String::new();
    file.take(MANIFEST_BYTES_MAX).read_to_string(&mut text).map_err(|_| none("its manifest is no text"))?;
    let manifest: serde_json::Value = serde_json::from_str(&text).map_err(|_| none("its manifest is no JSON"))?;
    let version = manifest["version"].as_str().unwrap_or_default();
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"+.-".contains(&b);
    if version.is_empty() || version.len() > 256 || !version.bytes().all(plain) {
        return Err(none("its version is no version"));
    }
    Ok(version.to_owned())
}
