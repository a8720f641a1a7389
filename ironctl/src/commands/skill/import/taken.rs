//! One skill between its source and its signed package.

use super::wanted::Wanted;
use crate::commands::skill::{failure, pack, verify};
use crate::failure::Error;
use crate::local_file;
use ironclaw_skill::Package;
use ironclaw_skill::author::lint::{Finding, Reference};
use ironclaw_skill::author::{self, Imported, SecretKey, Source, lint};
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Bytes of a script that is shown.
const SCRIPT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A directory for copies of skills, which is removed at the end.
pub(super) struct Scratch {
    path: PathBuf,
    count: usize,
}

impl Scratch {
    pub(super) fn new() -> Result<Self, Error> {
        let path = std::env::temp_dir().join(format!("ironctl-skill-{}", std::process::id()));
        let failed = |cause| Error::failed("skill_file", format!("cannot make {}", path.display())).because(cause);
        DirBuilder::new().mode(0o700).create(&path).map_err(failed)?;
        Ok(Self { path, count: 0 })
    }

    /// Returns a path that is not there.
    pub(super) fn next(&mut self) -> PathBuf {
        self.count += 1;
        self.path.join(self.count.to_string())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The system removes the rest of its temporary directory.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A program, with its text if it is one.
pub(super) struct Script {
    pub(super) file: String,
    pub(super) text: Option<String>,
}

/// A skill that was taken over into a copy.
pub(super) struct Taken {
    object: PathBuf,
    copy: PathBuf,
    pub(super) imported: Imported,
    pub(super) findings: Vec<Finding>,
    pub(super) references: Vec<Reference>,
    pub(super) scripts: Vec<Script>,
}

/// A package with its signature.
pub(super) struct Written {
    pub(super) file: PathBuf,
    pub(super) signature: PathBuf,
    pub(super) signer: String,
    pub(super) package: Package,
}

impl Taken {
    pub(super) fn new(wanted: &Wanted<'_>, scratch: &mut Scratch) -> Result<Self, Error> {
        let about = |cause| failure::about(&wanted.object, cause);
        let copy = scratch.next();
        let imported = match wanted.source {
            Some(source) => source.import(wanted.directory),
            None => Source::open(&wanted.object).and_then(|source| source.import(wanted.directory)),
        };
        let imported = imported.map_err(about)?;
        imported.write(&copy).map_err(about)?;
        let findings = author::lint(&copy).map_err(about)?;
        let references = lint::outward_references(&copy).map_err(about)?;
        let text = |file: &String| {
            let text = String::from_utf8(local_file::read_regular(&copy.join(file), SCRIPT_BYTES_MAX)?).ok();
            Ok(Script { file: file.clone(), text })
        };
        let scripts = imported.programs.iter().map(text).collect::<Result<_, Error>>()?;
        Ok(Self { object: wanted.object.clone(), copy, imported, findings, references, scripts })
    }

    /// Refuses a skill that is not packed.
    pub(super) fn refuse_errors(&self) -> Result<(), Error> {
        pack::refuse_errors(&self.object, &self.findings)
    }

    /// Packs and signs it into a file, or into a directory.
    pub(super) fn write(&self, out: Option<&Path>, key: &SecretKey) -> Result<Written, Error> {
        self.refuse_errors()?;
        let packed = author::pack(&self.copy).map_err(|cause| failure::about(&self.object, cause))?;
        let Imported { name, version, .. } = &self.imported;
        let own = format!("{name}-{version}.skill");
        let file = match out {
            Some(out) if out.is_dir() => out.join(&own),
            Some(out) => {
                pack::refuse_other_name(out, name.as_ref(), version)?;
                out.to_owned()
            }
            None => PathBuf::from(&own),
        };
        let hint = "remove it, or name another file with --out";
        pack::write(&file, &packed, false).map_err(|error| error.hinting(hint))?;
        let package = Package::read_from(packed.as_slice()).map_err(|cause| failure::about(&file, cause))?;
        let (signature, signer) = verify::sign_with(&file, &package, key, false)?;
        Ok(Written { file, signature, signer, package })
    }
}
