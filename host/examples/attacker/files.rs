//! Steps on files: the attacker creates, changes, truncates and removes files wherever the jail permits it.
//!
//! A refusal of the jail is recorded as an error of the step, and the test checks it. See `steps`.

use crate::steps::Step;
use std::error::Error;
use std::fs;

/// Plays a step that needs only files.
pub(crate) fn play(step: Step) -> Result<(), Box<dyn Error>> {
    use nix::fcntl::AT_FDCWD;
    use nix::sys::stat::Mode;
    use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
    match step {
        Step::Copy { from, to } => fs::write(to, fs::read(from)?)?,
        Step::Put { path, text } => fs::write(path, text)?,
        Step::Poke { path, at, length } => {
            let file = fs::OpenOptions::new().read(true).write(true).open(path)?;
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, at)?;
            bytes.iter_mut().for_each(|byte| *byte = !*byte);
            file.write_all_at(&bytes, at)?;
        }
        Step::Size { path, length } => {
            fs::OpenOptions::new().create(true).truncate(false).write(true).open(path)?.set_len(length)?;
        }
        Step::Remove(path) => fs::remove_file(path)?,
        Step::Rename { from, to } => fs::rename(from, to)?,
        Step::Directory(path) => fs::create_dir_all(path)?,
        Step::Files { directory, count } => {
            fs::create_dir_all(&directory)?;
            (0..count).try_for_each(|number| fs::write(format!("{directory}/{number}"), ""))?;
        }
        Step::Deep { directory, depth } => {
            fs::create_dir_all(&directory)?;
            std::env::set_current_dir(&directory)?;
            for _ in 0..depth {
                fs::create_dir("d")?;
                std::env::set_current_dir("d")?;
            }
            std::env::set_current_dir("/workspace")?;
        }
        Step::Mode { path, mode } => fs::set_permissions(path, fs::Permissions::from_mode(mode))?,
        Step::Symlink { to, path } => symlink(to, path)?,
        Step::Hardlink { to, path } => fs::hard_link(to, path)?,
        Step::Whiteout { from, to } => {
            let flags = nix::fcntl::RenameFlags::RENAME_WHITEOUT;
            nix::fcntl::renameat2(AT_FDCWD, from.as_str(), AT_FDCWD, to.as_str(), flags)?;
        }
        Step::Fifo(path) => nix::unistd::mkfifo(path.as_str(), Mode::from_bits_truncate(0o666))?,
        _ => return Err("a step without a player".into()),
    }
    Ok(())
}

/// Returns a rollback journal without pages and with `victim` as its super-journal, a file that SQLite removes.
pub(crate) fn journal(victim: &str, pages: u32) -> Vec<u8> {
    const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    const SECTOR: u32 = 512;
    let mut bytes = MAGIC.to_vec();
    for field in [0, 0, pages, SECTOR, 4096] {
        bytes.extend(u32::to_be_bytes(field));
    }
    bytes.resize(SECTOR as usize, 0);
    let lock_page = 0x4000_0000 / 4096 + 1;
    let checksum: u32 = victim.bytes().map(u32::from).sum();
    bytes.extend(u32::to_be_bytes(lock_page));
    bytes.extend(victim.as_bytes());
    bytes.extend(u32::to_be_bytes(victim.len() as u32));
    bytes.extend(checksum.to_be_bytes());
    bytes.extend(MAGIC);
    bytes
}
