//! The layer of the bundled server for trying: its program, copied from beside the host's own, and three files for it to show.
//!
//! Nothing else is in the layer. See the crate `ironclaw-mcp-demo` for the server, and [`super::Process::layer`].

use super::error::Error;
use ironclaw_contract::canonical::Digest;
use ironclaw_operator::DenialCode;
use ironclaw_state::home::{Home, make_private, remove_tree};
use ironclaw_store::refusal::Refusal;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::sync::OnceCell;

/// The program, by its name in the directory of the host's program and in a command.
const NAME: &str = "ironclaw-mcp-demo";
/// The program in the layer, in the first directory of the search.
const PROGRAM: &str = "usr/local/bin/ironclaw-mcp-demo";
/// The directory in the jail with the files of the demo.
pub const FILES: &str = "/usr/share/ironclaw-mcp-demo";
/// Each file of [`FILES`] with its text.
const TEXTS: [(&str, &str); 3] = [
    ("garden.txt", include_str!("demo/garden.txt")),
    ("meeting.txt", include_str!("demo/meeting.txt")),
    ("welcome.txt", include_str!("demo/welcome.txt")),
];
/// The begin of the names of layers. No name of a server begins with a dot.
const PREFIX: &str = ".demo-";

/// Returns whether a command names the bundled server.
pub fn is_named(command: &[String]) -> bool {
    command.first().is_some_and(|first| first == NAME)
}

/// Refuses a command of the bundled server without one directory, and every one if the program is not beside the host's own.
pub(super) fn refused(command: &[String]) -> Option<Refusal> {
    let shown =
        format!("`{NAME} {FILES}` shows its own files; another directory needs --mount and its place in the jail");
    if command.len() != 2 {
        let message = format!("{NAME} takes one directory");
        return Some(Refusal::new(DenialCode::McpCommand, message).hint(shown));
    }
    let is_there = beside().is_ok_and(|program| program.is_file());
    let message = format!("{NAME} is not in the directory of ironclaw-host");
    let missing =
        || Refusal::new(DenialCode::McpProgram, message).hint("install the programs of one build into one directory");
    (!is_there).then(missing)
}

/// The layer of a home, made once in the life of a host.
#[derive(Debug, Default)]
pub struct DemoLayer(OnceCell<PathBuf>);

impl DemoLayer {
    /// Returns the layer. The first use makes it, unless a complete one of this program is there, and removes those of other programs,
    /// which no process uses then.
    ///
    /// # Errors
    /// The program cannot be read, or the layer cannot be written.
    pub async fn get(&self, home: &Home) -> Result<PathBuf, Error> {
        let made = self.0.get_or_try_init(|| async {
            let above = home.mcp();
            let place = above.clone();
            let making = tokio::task::spawn_blocking(move || {
                let program = beside().map_err(Error::io(Path::new(NAME)))?;
                make(&above, &fs::read(&program).map_err(Error::io(&program))?)
            });
            making.await.map_err(io::Error::other).map_err(Error::io(&place))?
        });
        made.await.cloned()
    }
}

/// Returns the place of the program beside the host's own.
fn beside() -> io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name(NAME))
}

/// Returns the layer with this program below the directory `above`, complete and alone there.
fn make(above: &Path, program: &[u8]) -> Result<PathBuf, Error> {
    let texts = TEXTS.map(|(name, text)| (format!("{}/{name}", &FILES[1..]), text.as_bytes(), 0o444));
    let files: Vec<(String, &[u8], u32)> = std::iter::once((PROGRAM.to_owned(), program, 0o555)).chain(texts).collect();
    let name = format!("{PREFIX}{}", Digest::of(program));
    let layer = above.join(&name);
    let is_whole = |(file, bytes, mode): &(String, &[u8], u32)| {
        let path = layer.join(file);
        let is_plain = |found: fs::Metadata| found.is_file() && found.permissions().mode() & 0o777 == *mode;
        path.symlink_metadata().is_ok_and(is_plain) && fs::read(&path).is_ok_and(|found| found == *bytes)
    };
    make_private(above).map_err(io::Error::other).map_err(Error::io(above))?;
    let keeps = files.iter().all(is_whole);
    for entry in fs::read_dir(above).map_err(Error::io(above))?.flatten() {
        let found = entry.file_name();
        let is_layer = found.to_str().is_some_and(|found| found.starts_with(PREFIX));
        if is_layer && !(keeps && *found == *name) {
            remove_tree(&entry.path()).map_err(Error::io(&entry.path()))?;
        }
    }
    if !keeps {
        // A crash leaves a name that is no layer, and the next start removes it.
        let new = above.join(format!("{PREFIX}new"));
        for (file, bytes, mode) in &files {
            write(&new, Path::new(file), bytes, *mode).map_err(Error::io(&new.join(file)))?;
        }
        fs::rename(&new, &layer).map_err(Error::io(&layer))?;
    }
    Ok(layer)
}

/// Writes a file of a layer that each user can read and none can write, with the directories above it, whatever the mask of the host.
fn write(layer: &Path, file: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let path = layer.join(file);
    DirBuilder::new().recursive(true).create(path.parent().unwrap_or(layer))?;
    for above in file.ancestors().skip(1) {
        fs::set_permissions(layer.join(above), Permissions::from_mode(0o755))?;
    }
    let mut new = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    new.write_all(bytes)?;
    new.set_permissions(Permissions::from_mode(mode))?;
    new.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[&str]) -> Vec<String> {
        line.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn layer_has_the_program_and_is_made_once() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let above = directory.path().join("mcp");
        let layer = make(&above, b"one").expect("made");
        let program = layer.join(PROGRAM);
        assert_eq!(fs::read(&program).expect("read"), b"one");
        assert_eq!(program.metadata().expect("there").permissions().mode() & 0o777, 0o555);
        assert_eq!(fs::read_dir(layer.join(&FILES[1..])).expect("listed").count(), TEXTS.len());
        fs::write(layer.join("mark"), "x").expect("written");
        assert_eq!(make(&above, b"one").expect("kept"), layer);
        assert!(layer.join("mark").exists());
    }

    #[test]
    fn changed_layer_and_layer_of_another_program_are_replaced() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let layer = make(directory.path(), b"one").expect("made");
        fs::create_dir(directory.path().join("server")).expect("made");
        fs::create_dir(directory.path().join(format!("{PREFIX}new"))).expect("the remains of a crash");
        fs::remove_file(layer.join(PROGRAM)).expect("removed");
        fs::write(layer.join(PROGRAM), "two").expect("written");
        assert_eq!(make(directory.path(), b"one").expect("made again"), layer);
        assert_eq!(fs::read(layer.join(PROGRAM)).expect("read"), b"one");
        let next = make(directory.path(), b"two").expect("made");
        assert!(next != layer && next.exists() && !layer.exists());
        assert!(directory.path().join("server").exists(), "states of servers stay");
    }

    #[test]
    fn command_of_the_demo_has_one_directory() {
        for (line, code) in [
            (&[NAME][..], DenialCode::McpCommand),
            (&[NAME, "/a", "/b"], DenialCode::McpCommand),
            // The program of the tests has no such neighbour.
            (&[NAME, "/a"], DenialCode::McpProgram),
        ] {
            assert!(is_named(&words(line)));
            assert_eq!(refused(&words(line)).map(|refusal| refusal.code), Some(code), "{line:?}");
        }
        assert!(!is_named(&words(&["/usr/bin/ironclaw-mcp-demo", "/a"])) && !is_named(&[]));
    }
}
