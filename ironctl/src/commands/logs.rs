//! `ironctl logs`: shows the log of the host.
//!
//! Never asks the host, so it works without a running host. See [`crate::commands::why`] for one message.

use crate::at::At;
use crate::failure::Error;
use crate::home;
use serde_json::json;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// Bytes from the end of the log that are read.
const TAIL_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Interval between two reads of a followed log.
const FOLLOW_POLL: Duration = Duration::from_millis(200);

/// Options of `ironctl logs`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ironctl logs -n 100\n  ironctl logs -f")]
pub struct Args {
    /// Follow the log
    #[arg(short, long)]
    follow: bool,
    /// Number of lines from the end
    #[arg(short, default_value_t = 50, value_name = "N")]
    n: usize,
}

/// Prints the end of the log, and follows it with `--follow`.
pub fn run(at: &At, args: &Args) -> Result<(), Error> {
    let path = at.home.log_file();
    let mut file = home::open_file(&path).map(BufReader::new).map_err(|c| unreadable(&path, c))?;
    for line in last_lines(&mut file, args.n).map_err(|c| unreadable(&path, c))? {
        print(at, &line)?;
    }
    if args.follow { Err(follow(at, file, &path)) } else { Ok(()) }
}

/// Prints each new line of the log; returns only on a failure.
fn follow(at: &At, mut file: BufReader<File>, path: &Path) -> Error {
    let mut line = Vec::new();
    loop {
        let got = match file.read_until(b'\n', &mut line) {
            Ok(got) => got,
            Err(cause) => return unreadable(path, cause),
        };
        if line.ends_with(b"\n") {
            if let Err(error) = print(at, &line) {
                return error;
            }
            line.clear();
        } else if got == 0 {
            std::thread::sleep(FOLLOW_POLL);
            if was_replaced(file.get_mut(), path)
                && let Ok(new) = home::open_file(path)
            {
                file = BufReader::new(new);
                line.clear();
            }
        }
    }
}

fn unreadable(path: &Path, cause: io::Error) -> Error {
    Error::failed("log_unreadable", format!("cannot read {}", path.display()))
        .because(cause)
        .hinting("the host creates it at its start: `ironctl up --detach`")
}

fn print(at: &At, line: &[u8]) -> Result<(), Error> {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end_matches('\n');
    at.out.result(&json!({ "line": text }), text)
}

/// Returns the last `n` lines and leaves the file at its end.
fn last_lines(file: &mut BufReader<File>, n: usize) -> io::Result<Vec<Vec<u8>>> {
    let length = file.get_ref().metadata()?.len();
    let start = length.saturating_sub(TAIL_BYTES_MAX);
    file.seek(SeekFrom::Start(start))?;
    let mut text = Vec::new();
    file.by_ref().take(length - start).read_to_end(&mut text)?;
    let mut lines: Vec<Vec<u8>> = text.split_inclusive(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
    let skip = lines.len().saturating_sub(n);
    Ok(lines.split_off(skip))
}

/// Returns whether the log was rotated or truncated while it was open.
fn was_replaced(open: &mut File, path: &Path) -> bool {
    let (Ok(ours), Ok(theirs)) = (open.metadata(), path.metadata()) else {
        return false;
    };
    let position = open.stream_position().unwrap_or(0);
    ours.ino() != theirs.ino() || theirs.len() < position
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn last_lines_are_read() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("host.log");
        fs::write(&path, "one\ntwo\nthree\n").expect("written");
        let open = || BufReader::new(File::open(&path).expect("opened"));
        assert_eq!(last_lines(&mut open(), 2).expect("read"), [b"two\n".to_vec(), b"three\n".to_vec()]);
        assert_eq!(last_lines(&mut open(), 9).expect("read").len(), 3);
        assert!(last_lines(&mut open(), 0).expect("read").is_empty());
    }
}
