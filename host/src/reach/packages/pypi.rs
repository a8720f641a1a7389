//! Fetching with pip: wheels only, so no build step and no script of a package runs.
//!
//! pip unpacks into a root of its own, with the paths of the machine's python3, which finds the modules there in a jail. See
//! `reach::packages::fetch` for the other clients.

use super::client::{Task, WORK, create_writable, run};
use super::error::{Error, unfit};
use super::fetch::ROOTS;
use super::source::{Place, Source};
use super::work_dir::{FetchContext, WorkDir};
use crate::registry::software::{pypi_name, pypi_parts};
use ironclaw_operator::DenialCode;
use ironclaw_store::refusal::Refusal;
use std::fs;
use std::path::Path;

/// The interpreter of pip.
const PYTHON: &str = "/usr/bin/python3";
/// Runs pip and refuses each further process. A wheel can name a source archive by its address, and pip would run its build step.
const GUARD: &str = "import runpy, sys
NEVER = ('subprocess.Popen', 'os.system', 'os.exec', 'os.posix_spawn', 'os.fork', 'os.forkpty')
def refuse(event, arguments):
    if event in NEVER:
        raise PermissionError('a package needs a build step')
sys.addaudithook(refuse)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name='__main__')
";
/// The words of [`GUARD`].
const NEEDS_BUILD: &str = "a package needs a build step";
/// The words of pip for an unknown package, and for one without a wheel for this machine.
const NO_MATCH: &str = "No matching distribution found";
/// The end of the directory with the metadata of an unpacked package.
const METADATA: &str = ".dist-info";
/// Directories between the root and the metadata: `usr/local/lib/python3.11/dist-packages`.
const DEPTH_MAX: usize = 6;
/// The end of a refusal: the outcome of a change has the message alone.
const NO_WHEEL: &str = "the host fetches wheels alone, because a source package runs a build step: name a package or version with a wheel for this machine";

/// Fetches packages with their dependencies into a root of their own. Returns it with `name=version` of each package.
///
/// # Errors
/// Refuses a package without a wheel for this machine, by its name.
pub(super) async fn fetch(
    context: &FetchContext,
    work_dir: &WorkDir,
    names: &[String],
) -> Result<(Source, Vec<String>), Error> {
    install(context, work_dir, names, &[]).await?;
    let root = work_dir.work().join("pypi");
    let mut fetched = Vec::new();
    find_metadata(&root, DEPTH_MAX, &mut fetched)?;
    fetched.sort();
    for name in names.iter().map(|name| pypi_name(pypi_parts(name).0)) {
        if !fetched.iter().any(|(known, _)| pypi_name(known) == name) {
            return Err(unfit(format!("pip fetched no package {name:?}")));
        }
    }
    let fetched = fetched.into_iter().map(|(name, version)| format!("{name}={version}")).collect();
    Ok((Source { root, place: Place::Root, name: "pypi".to_owned() }, fetched))
}

/// Returns the version of a package alone, and the programs that it brings.
pub(super) async fn view(
    context: &FetchContext,
    work_dir: &WorkDir,
    package: String,
) -> Result<(String, Vec<String>), Error> {
    install(context, work_dir, std::slice::from_ref(&package), &["--no-deps"]).await?;
    let root = work_dir.work().join("pypi");
    let mut fetched = Vec::new();
    find_metadata(&root, DEPTH_MAX, &mut fetched)?;
    let [(_, version)] = fetched.as_slice() else { return Err(unfit(format!("pip fetched no package {package:?}"))) };
    let scripts = fs::read_dir(root.join("usr/local/bin")).into_iter().flatten().flatten();
    let scripts = scripts.filter_map(|script| plain(script.file_name().to_str()?).ok());
    let mut programs: Vec<String> = scripts.collect();
    programs.sort();
    Ok((version.clone(), programs))
}

/// Unpacks packages into a root of their own.
async fn install(context: &FetchContext, work_dir: &WorkDir, names: &[String], more: &[&str]) -> Result<(), Error> {
    create_writable(context, work_dir, &["pypi"])?;
    let run_with = |choice| run(context, work_dir, task(context, names, &[&[choice], more].concat()));
    if let Err(error) = run_with("--only-binary=:all:").await {
        let says = |error: &Error, words| matches!(error, Error::Refused(refusal) if refusal.message.contains(words));
        // pip does not distinguish them. With sources it finds the archive of a known package, and the guard ends its build step.
        let needs_build = says(&error, NEEDS_BUILD)
            || says(&error, NO_MATCH)
                && run_with("--prefer-binary").await.is_err_and(|again| says(&again, NEEDS_BUILD));
        return Err(match error {
            Error::Refused(refusal) if needs_build => {
                Refusal::new(DenialCode::PackageNeedsBuild, format!("{}; {NO_WHEEL}", refusal.message)).into()
            }
            other => other,
        });
    }
    Ok(())
}

/// Returns a run of pip with these options, such as the choice between wheels and sources.
fn task<'a>(context: &FetchContext, names: &[String], options: &[&str]) -> Task<'a> {
    let pip = context.config.pip().display().to_string();
    let mut args = vec!["-I".to_owned(), "-c".to_owned(), GUARD.to_owned(), pip];
    args.extend(["install"].iter().chain(options).map(|word| (*word).to_owned()));
    // A package of the machine is no part of the layer, so it takes the place of none.
    args.extend(["--ignore-installed", "--no-compile", "--no-cache-dir", "--no-input"].map(str::to_owned));
    args.extend(
        ["--disable-pip-version-check", "--no-warn-script-location", "--progress-bar=off", "--no-color", "--quiet"]
            .map(str::to_owned),
    );
    args.extend(["--retries=1".to_owned(), "--timeout=60".to_owned(), format!("--root={WORK}/pypi")]);
    if let Some(index) = &context.config.pypi_index {
        args.push(format!("--index-url={index}"));
    }
    if let Some(roots) = ROOTS.into_iter().find(|file| Path::new(file).is_file()) {
        args.push(format!("--cert={roots}"));
    }
    args.push("--".to_owned());
    args.extend(names.iter().cloned());
    // Not options, because older versions of pip do not know them.
    let allowed = ["PIP_BREAK_SYSTEM_PACKAGES", "PIP_ROOT_USER_ACTION"].into_iter().zip(["1", "ignore"]);
    Task {
        program: Path::new(PYTHON),
        args,
        environment: allowed.map(|(name, value)| (name, value.to_owned())).collect(),
        network: true,
        bind_mounts: Vec::new(),
        what: "fetch packages of pypi",
    }
}

/// Finds name and version of each unpacked package by the names of their directories. Follows no link.
fn find_metadata(directory: &Path, depth: usize, found: &mut Vec<(String, String)>) -> Result<(), Error> {
    for entry in fs::read_dir(directory).map_err(Error::io(directory))? {
        let entry = entry.map_err(Error::io(directory))?;
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let name = entry.file_name();
        match name.to_str().and_then(|name| name.strip_suffix(METADATA)).and_then(|name| name.rsplit_once('-')) {
            Some((name, version)) => found.push((plain(name)?, plain(version)?)),
            None if depth > 1 => find_metadata(&entry.path(), depth - 1, found)?,
            None => {}
        }
    }
    Ok(())
}

/// Returns a name or version of a package; refuses other characters, because the outcome of a change shows it.
fn plain(text: &str) -> Result<String, Error> {
    match text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._+!".contains(&b)) {
        true => Ok(text.to_owned()),
        false => Err(unfit("pip fetched a package whose name or version is not plain text".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpacked_packages_are_known_by_name_and_version() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let place = root.path().join("usr/local/lib/python3.11/dist-packages");
        for name in ["mcp_server-1.0.dist-info", "mcp_server", "a-2!1.0+x.dist-info"] {
            fs::create_dir_all(place.join(name)).expect("made");
        }
        fs::write(place.join("file-1.dist-info"), "x").expect("written");
        let mut found = Vec::new();
        find_metadata(root.path(), DEPTH_MAX, &mut found).expect("read");
        found.sort();
        let expected = [("a", "2!1.0+x"), ("mcp_server", "1.0")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        assert_eq!(found, expected);
        fs::create_dir(place.join("b\u{202e}-1.dist-info")).expect("made");
        assert!(find_metadata(root.path(), DEPTH_MAX, &mut Vec::new()).is_err());
    }
}
