//! Backups of a run, restores of them, and the count of the requests that a restore takes out of the record.

use super::{Known, PEOPLE, Random};
use std::path::PathBuf;

/// A backup of the host, and what the test knew at that time.
pub(super) struct Backup {
    file: PathBuf,
    known: Known,
    /// The requests that waited at the time of the backup.
    open: Vec<String>,
    recorded: Counted,
}

/// The size of a campaign.
#[derive(Debug, Clone, Default)]
pub(super) struct Counted {
    pub(super) requests: usize,
    pub(super) approved: usize,
    /// Starts of a host.
    pub(super) starts: usize,
    pub(super) restores: usize,
}

impl Counted {
    /// Adds the requests of `end` that are not in `begun`.
    pub(super) fn add(&mut self, begun: &Self, end: &Self) {
        self.requests += end.requests - begun.requests;
        self.approved += end.approved - begun.approved;
    }
}

impl Random {
    pub(super) fn back_up(&mut self) {
        let file = self.host.home.with_file_name("calls.backup");
        let requests = self.get(0, "/v1/waiting?type=call&status=pending");
        let ids = requests["entries"].as_array().expect("a list").iter().filter_map(|request| request["id"].as_str());
        let open = ids.map(str::to_owned).collect();
        self.host.ctl(&["backup", "create", file.to_str().expect("UTF-8"), "--force"]).ok();
        // Requests of the time between the two lines count in no sum.
        let recorded = self.recorded();
        self.backup = Some(Backup { file, known: self.known.clone(), open, recorded });
    }

    /// Counts the requests of the present record.
    pub(super) fn recorded(&self) -> Counted {
        let ledger = self.host.ledger();
        let count = |what: &str| ledger.iter().filter(|entry| entry["data"]["what"] == what).count();
        Counted { requests: count("call.asked"), approved: count("request.approved"), ..Counted::default() }
    }

    /// Restores the last backup in place. No request of it can be decided, because the heads outside are newer.
    pub(super) fn restore(&mut self) {
        self.check_invariants();
        let Some(Backup { file, known, open, recorded }) = self.backup.take() else { return };
        self.counted.add(&recorded, &self.recorded());
        self.counted.restores += 1;
        self.host.down();
        let name = file.to_str().expect("UTF-8");
        let restored = self.host.ctl(&["--json", "backup", "restore", name, "--replace", "--yes"]).ok().json();
        std::fs::remove_dir_all(restored["former"].as_str().expect("the former home")).expect("removed");
        self.known = known;
        self.is_restored = true;
        self.up(None);
        self.host.ctl(&["audit", "accept", "--reason", "restored a backup"]).ok();
        for id in open {
            let status = self.get(0, &format!("/v1/waiting/{id}"))["status"].clone();
            assert!(status != "pending" && status != "approved", "{id} is {status} after a restore");
        }
        // A token of the backup may be one that was revoked later.
        (1..PEOPLE.len()).for_each(|person| self.renew_token(person));
    }
}
