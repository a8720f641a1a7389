//! One sample of every shape about the settings, the backup and the removal of a home. Every value is fixed. See `operator`.

use super::{Shape, shape};
use ironclaw_operator::{Backup, BackupRestored, BackupVerified, LedgerWhole, Reloaded, Removal, RemovalPath};

pub(super) fn shapes() -> Vec<Shape> {
    let home = "/home/olga/.local/state/ironclaw".to_owned();
    let reloaded = Reloaded {
        file: Some(format!("{home}/config.toml")),
        applied: vec!["mounts.allow".to_owned()],
        restart: vec!["api.listen".to_owned()],
        policy_changed: true,
        warnings: vec!["no change can be approved of kind persona".to_owned()],
    };
    let path = RemovalPath { path: home.clone(), what: "the home".to_owned() };
    let keep = vec![RemovalPath { path: "/opt/ironclaw".to_owned(), what: "the programs".to_owned() }];
    let backup = Backup {
        id: "0a".repeat(16),
        created_at: "2026-11-18T05:08:09Z".to_owned(),
        key: "ab".repeat(8),
        generation: 2,
        schema: 14,
        entries: 42,
        files: 7,
        bytes: 4096,
        changed: 1,
        skipped: 0,
    };
    let ledger = LedgerWhole {
        ok: true,
        entries: 42,
        chains: 1,
        heads: 3,
        ledger: "c0".repeat(32),
        key: None,
        accepted: Vec::new(),
        remarks: Vec::new(),
    };
    let restored = BackupRestored {
        home: home.clone(),
        backup: backup.clone(),
        former: Some(format!("{home}.before-restore-1")),
        heads: 3,
        todo: vec!["start the host".to_owned()],
    };
    vec![
        shape("operator.reloaded", reloaded.clone()),
        shape("operator.reloaded.bare", Reloaded { file: None, ..reloaded }),
        shape("operator.removal_path", path.clone()),
        shape("operator.removal", Removal { home, remove: vec![path], keep }),
        shape("operator.backup", backup.clone()),
        shape("operator.backup_verified", BackupVerified { backup, ledger }),
        shape("operator.backup_restored", restored.clone()),
        shape("operator.backup_restored.new", BackupRestored { former: None, ..restored }),
    ]
}
