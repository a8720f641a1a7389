//! Unpacking of apt's archives, by the machine's own unpacker in a jail without a network. No package is installed, and no script of an
//! archive is read.
//!
//! Never unpacks an archive whose list has a file that no layer may hold. See [`crate::reach::packages::layer`].

use super::client::{Task, WORK, create_writable, failed, follow, run};
use super::error::{Error, unfit};
use super::fetch::{ARCHIVES, Archive};
use super::source::{PATH_BYTES_MAX, Place, Source, check_size};
use super::work_dir::{FetchContext, WorkDir};
use crate::registry::live_settings::packages::Config;
use ironclaw_jail::launcher::Exit;
use std::path::Path;

/// Program that unpacks an archive for apt.
pub(super) const UNPACKER: &str = "/usr/bin/dpkg-deb";
/// Longest line of a listing: a mode, an owner, a date and two paths.
const LINE_BYTES_MAX: usize = 10 * 1024;
/// Bytes that a listing writes around a path: `./`, ` -> ` or ` link to `.
const LINK_WORDS_BYTES: usize = 9;
/// Most bytes of other messages that are kept.
const COMPLAINT_BYTES_MAX: usize = 2 * 1024;

/// Unpacks each archive into a directory of its own.
pub(super) async fn archives(
    context: &FetchContext,
    work_dir: &WorkDir,
    archives: &[Archive],
) -> Result<Vec<Source>, Error> {
    let mut sources = Vec::with_capacity(archives.len());
    let mut listed = Listed::default();
    for (number, Archive { file, name }) in archives.iter().enumerate() {
        let archive = format!("{WORK}/{ARCHIVES}/{file}");
        let place = format!("unpacked/{number}");
        create_writable(context, work_dir, &[&place])?;
        let task = |args: Vec<String>, what| Task {
            program: Path::new(UNPACKER),
            args,
            environment: Vec::new(),
            network: false,
            bind_mounts: Vec::new(),
            what,
        };
        let what = format!("list the archive of {name}");
        listed.begin(name);
        let list = task(vec!["--contents".to_owned(), archive.clone()], &what);
        let exit = follow(context, work_dir, list, |bytes| listed.take(bytes, &context.config)).await?;
        if exit != Exit::Code(0) {
            return Err(failed(&what, exit, &listed.complaint));
        }
        let what = format!("unpack the archive of {name}");
        run(context, work_dir, task(vec!["--extract".to_owned(), archive, format!("{WORK}/{place}")], &what)).await?;
        sources.push(Source { root: work_dir.work().join(&place), place: Place::Root, name: name.clone() });
    }
    Ok(sources)
}

/// Listings of archives, line by line: `-rwxr-xr-x root/root 123 2024-01-01 00:00 ./usr/bin/x`.
#[derive(Default)]
struct Listed {
    archive: String,
    line: Vec<u8>,
    complaint: String,
    bytes: u64,
    files: u64,
}

impl Listed {
    fn begin(&mut self, archive: &str) {
        archive.clone_into(&mut self.archive);
        self.line.clear();
        self.complaint.clear();
    }

    fn take(&mut self, bytes: &[u8], config: &Config) -> Result<(), Error> {
        for byte in bytes {
            if *byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                self.check_line(&String::from_utf8_lossy(&line), config)?;
            } else if self.line.len() < LINE_BYTES_MAX {
                self.line.push(*byte);
            } else {
                return Err(unfit(format!(
                    "{} lists a file with a name of more than {LINE_BYTES_MAX} bytes",
                    self.archive
                )));
            }
        }
        Ok(())
    }

    fn check_line(&mut self, line: &str, config: &Config) -> Result<(), Error> {
        let mut words = line.split_ascii_whitespace();
        let (mode, size) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
        let is_mode = mode.len() == 10 && mode.bytes().all(|b| b"-dlhcbpsStTrwxugC".contains(&b));
        if !is_mode {
            // The unpacker's own messages come between the lines.
            if self.complaint.len() + line.len() < COMPLAINT_BYTES_MAX {
                self.complaint.push_str(line);
                self.complaint.push('\n');
            }
            return Ok(());
        }
        let path = behind_words(line, 5);
        // The length is checked before the path is shown. A link's line also has its target.
        let paths = if mode.starts_with(['l', 'h']) { 2 } else { 1 };
        if path.len() > paths * (PATH_BYTES_MAX + LINK_WORDS_BYTES) {
            return Err(unfit(format!("{} brings a path of more than {PATH_BYTES_MAX} bytes", self.archive)));
        }
        let no = |what: &str| Err(unfit(format!("{} brings {path:?}, which is {what}", self.archive)));
        match mode.as_bytes()[0] {
            b'-' | b'd' | b'l' | b'h' => {}
            b'c' | b'b' => return no("a device"),
            b'p' => return no("a pipe"),
            _ => return no("neither file, directory nor link"),
        }
        if mode[1..].contains(['s', 'S']) {
            return no("set-uid or set-gid");
        }
        self.files += 1;
        // A device has two numbers here, but is refused above.
        self.bytes = self.bytes.saturating_add(size.parse().unwrap_or(0));
        check_size(self.bytes, self.files, config)
    }
}

/// Returns the text after this many words and one space, with all further spaces.
fn behind_words(line: &str, count: usize) -> &str {
    let mut rest = line;
    for _ in 0..count {
        rest = rest.trim_ascii_start();
        rest = rest.find(|c: char| c.is_ascii_whitespace()).map_or("", |end| &rest[end..]);
    }
    rest.strip_prefix(' ').unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(lines: &str) -> Result<Listed, Error> {
        let mut listed = Listed::default();
        listed.begin("evil=1");
        let config = Config { layer_bytes_max: 1000, layer_files_max: 3, ..Config::default() };
        for chunk in lines.as_bytes().chunks(7) {
            listed.take(chunk, &config)?;
        }
        Ok(listed)
    }

    #[test]
    fn archive_with_a_forbidden_entry_is_refused_before_unpacking() {
        for (line, words) in [
            ("-rwsr-xr-x root/root 1 2024-01-01 00:00 ./usr/bin/su do", "\"./usr/bin/su do\", which is set-uid"),
            ("-rwxr-sr-x root/root 1 2024-01-01 00:00 ./usr/bin/x", "set-uid or set-gid"),
            ("-rwSr--r-- root/root 1 2024-01-01 00:00 ./usr/bin/x", "set-uid or set-gid"),
            ("drwxr-sr-x root/root 0 2024-01-01 00:00 ./usr/x/", "set-uid or set-gid"),
            ("crw-rw-rw- root/root 1,3 2024-01-01 00:00 ./usr/x", "a device"),
            ("brw-rw-rw- root/root 8,0 2024-01-01 00:00 ./usr/x", "a device"),
            ("prw-rw-rw- root/root 0 2024-01-01 00:00 ./usr/x", "a pipe"),
            ("srw-rw-rw- root/root 0 2024-01-01 00:00 ./usr/x", "neither file"),
            ("-rw-r--r-- root/root 1001 2024-01-01 00:00 ./usr/x", "larger than allowed"),
        ] {
            let error = listed(&format!("{line}\n")).err().unwrap_or_else(|| panic!("{line} was taken")).to_string();
            assert!(error.contains(words), "{error}");
        }
        let deep = "x/".repeat(PATH_BYTES_MAX / 2 + 5);
        let spaces = " ".repeat(PATH_BYTES_MAX + 10);
        for path in [format!("./usr/{deep}"), format!("./usr/a{spaces}b")] {
            let error = listed(&format!("-rw-r--r-- root/root 1 2024-01-01 00:00 {path}\n"));
            assert!(error.is_err_and(|error| error.to_string().contains("a path of more than 1024 bytes")), "{path}");
        }
        let many = "-rw-r--r-- root/root 1 2024-01-01 00:00 ./usr/x\n".repeat(4);
        assert!(listed(&many).is_err_and(|error| error.to_string().contains("larger than allowed")));
        assert!(listed(&"x".repeat(LINE_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn an_ordinary_listing_passes_and_a_complaint_is_kept() {
        let said = listed(
            "drwxr-xr-x root/root 0 2024-01-01 00:00 ./\n-rwxr-xr-x root/root 9 2024-01-01 00:00 ./usr/bin/x\n\
             lrwxrwxrwx root/root 0 2024-01-01 00:00 ./usr/bin/y -> x\ndpkg-deb: error: short read\n",
        );
        let said = said.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((said.files, said.bytes, said.complaint.as_str()), (3, 9, "dpkg-deb: error: short read\n"));
    }
}
