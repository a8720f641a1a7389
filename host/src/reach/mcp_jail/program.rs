//! The search for the program of a server, in the files that its jail will have.
//!
//! Follows links as the jail will, and runs nothing. The kernel decides again at the launch. See [`ironclaw_jail::System`].

use ironclaw_jail::system::{LINKS, SHOWN};
use ironclaw_operator::DenialCode;
use ironclaw_store::refusal::Refusal;
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// The directories of programs in the jail of a server, in the order of the search.
pub const PATH: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];
/// Most programs that a hint names.
const PROGRAMS_MAX: usize = 12;
/// The hint for a program that no package brings.
const NO_PACKAGE: &str = "name the package that has it with --npm, --pypi or --apt, or give another command";
/// Most links on one path.
const LINKS_MAX: usize = 40;

/// Returns the path in the jail of the program `word`: an absolute path as given, or its place in [`PATH`].
///
/// `machine` is the root of the machine, and the `usr` of `layer` is laid over its `usr`.
///
/// # Errors
/// Refuses a word with a relative path, and a program that is missing or not executable.
pub(super) fn find(machine: &Path, layer: Option<&Path>, word: &str) -> Result<String, Refusal> {
    let view = View { machine, layer };
    let no = |message: String, hint: &str| Err(Refusal::new(DenialCode::McpProgram, message).hint(hint));
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-+/".contains(&b);
    if !word.bytes().all(plain) || word.contains('/') && !word.starts_with('/') {
        let hint = "give a name, or an absolute path, of letters, digits and . _ - +";
        return no(format!("{word:?} is no program for a server"), hint);
    }
    let places = match word.starts_with('/') {
        true => vec![word.to_owned()],
        false => PATH.iter().map(|directory| format!("{directory}/{word}")).collect(),
    };
    let runs = |found: &Metadata| found.is_file() && found.permissions().mode() & 0o111 != 0;
    match places.into_iter().find(|place| view.metadata(Path::new(place)).is_some_and(|found| runs(&found))) {
        Some(place) => Ok(place),
        None => {
            // The outcome of a change has the message alone.
            let brought = layer.map(programs).unwrap_or_default();
            let (brings, hint) = match brought.is_empty() {
                true => (String::new(), NO_PACKAGE),
                false => {
                    (format!("; its packages bring the programs {}", brought.join(", ")), "give one of them after --")
                }
            };
            no(format!("the jail of the server has no program {word}{brings}"), hint)
        }
    }
}

/// Returns the names of programs that a layer brings, in order and up to a bound.
fn programs(layer: &Path) -> Vec<String> {
    let mut names: Vec<String> = ["usr/local/bin", "usr/bin"]
        .iter()
        .filter_map(|directory| std::fs::read_dir(layer.join(directory)).ok())
        .flat_map(|entries| entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()))
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-+".contains(&byte)))
        .collect();
    names.sort();
    names.dedup();
    names.truncate(PROGRAMS_MAX);
    names
}

/// The files of the machine that a jail shows, with its layer.
struct View<'a> {
    machine: &'a Path,
    layer: Option<&'a Path>,
}

impl View<'_> {
    /// Returns the metadata of a file by its path in the jail, behind all links.
    fn metadata(&self, path: &Path) -> Option<Metadata> {
        let (mut here, mut links) = (PathBuf::from("/"), 0);
        let mut found = None;
        let mut rest: Vec<OsString> = Vec::new();
        push(&mut rest, path);
        while let Some(name) = rest.pop() {
            if name == ".." {
                here.pop();
                continue;
            }
            let next = here.join(&name);
            let (place, metadata) = self.entry(&next)?;
            if metadata.is_symlink() {
                links += 1;
                let target = std::fs::read_link(place).ok().filter(|_| links <= LINKS_MAX)?;
                if target.is_absolute() {
                    here = PathBuf::from("/");
                }
                push(&mut rest, &target);
                continue;
            }
            here = next;
            found = Some(metadata);
        }
        found
    }

    /// Returns the place on the machine and the metadata of one entry of the jail.
    fn entry(&self, path: &Path) -> Option<(PathBuf, Metadata)> {
        let inside = path.strip_prefix("/").ok()?;
        let is_link = LINKS.iter().any(|name| inside == Path::new(name));
        let is_shown = SHOWN.iter().any(|shown| path.starts_with(shown) || Path::new(shown).starts_with(path));
        if !is_link && !is_shown {
            return None;
        }
        let layer = self.layer.filter(|_| inside.starts_with("usr"));
        let places = layer.into_iter().chain([self.machine]).map(|root| root.join(inside));
        places.into_iter().find_map(|place| place.symlink_metadata().ok().map(|found| (place, found)))
    }
}

/// Pushes the components of a path, the first on top.
fn push(rest: &mut Vec<OsString>, path: &Path) {
    let part = |component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    rest.extend(path.components().rev().filter_map(part));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// Makes a file of this mode, with the directories above it.
    fn make(path: &Path, mode: u32) {
        fs::create_dir_all(path.parent().expect("it has a directory")).expect("made");
        fs::write(path, "x").expect("written");
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("permissions");
    }

    #[test]
    fn program_is_found_in_layer_first_and_behind_links() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (machine, layer) = (directory.path().join("machine"), directory.path().join("layer"));
        make(&machine.join("usr/bin/node-20"), 0o755);
        make(&machine.join("usr/bin/python3"), 0o755);
        make(&machine.join("opt/tool"), 0o755);
        make(&layer.join("usr/local/bin/python3"), 0o755);
        make(&layer.join("usr/lib/node_modules/x/cli.js"), 0o755);
        fs::create_dir_all(machine.join("etc/alternatives")).expect("made");
        symlink("usr/bin", machine.join("bin")).expect("a link");
        symlink("/usr/bin/node-20", machine.join("etc/alternatives/node")).expect("a link");
        symlink("/etc/alternatives/node", machine.join("usr/bin/node")).expect("a link");
        fs::create_dir_all(layer.join("usr/bin")).expect("made");
        symlink("../lib/node_modules/x/cli.js", layer.join("usr/bin/x")).expect("a link");
        symlink("/opt/tool", machine.join("usr/bin/tool")).expect("a link");
        symlink("circle", machine.join("usr/bin/circle")).expect("a link");
        make(&machine.join("usr/bin/plain"), 0o644);
        fs::create_dir(machine.join("usr/bin/directory")).expect("made");
        let found = |word: &str| find(&machine, Some(&layer), word);
        for (word, place) in [
            ("python3", "/usr/local/bin/python3"),
            ("node", "/usr/bin/node"),
            ("x", "/usr/bin/x"),
            ("/bin/node-20", "/bin/node-20"),
            ("/usr/bin/python3", "/usr/bin/python3"),
        ] {
            assert_eq!(found(word).as_deref(), Ok(place), "{word}");
        }
        assert_eq!(find(&machine, None, "python3").as_deref(), Ok("/usr/bin/python3"));
        for word in ["none", "tool", "circle", "plain", "directory", "/opt/tool", "/etc/passwd", "../x", "bin/x", "a b"]
        {
            let refusal = found(word).expect_err("refused");
            assert_eq!(refusal.code, DenialCode::McpProgram, "{word}");
            assert!(refusal.message.contains(word), "{refusal}");
        }
        let refusal = |layer| find(&machine, layer, "none").expect_err("refused");
        let brought = refusal(Some(&*layer)).message;
        assert!(brought.contains("python3, x"), "the programs of the layer: {brought}");
        assert_eq!(refusal(None).hint, NO_PACKAGE);
    }
}
