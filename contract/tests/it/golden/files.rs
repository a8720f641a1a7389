//! One sample of every answer and body of the requests about files and conversations. See `operator`.

use super::operator::{AT, session_id};
use super::seam::{digest, id};
use super::{Shape, shape};
use ironclaw_contract::ids::TurnId;
use ironclaw_operator::{
    Conversation, FileEntry, FileHistory, FileKind, FileLeftOut, FileList, FileLoss, FileRemoved, FileRestore,
    FileRestored, FileStored, FileVersion, NewConversation, NoCopy,
};

pub(super) fn all() -> Vec<Shape> {
    let file = FileEntry {
        path: Some("notes/today.txt".to_owned()),
        shown: "notes/today.txt".to_owned(),
        kind: FileKind::File,
        bytes: Some(12),
        modified_at: AT.to_owned(),
    };
    let link =
        FileEntry { path: None, shown: "a⟦U+FFFD⟧".to_owned(), kind: FileKind::Link, bytes: None, ..file.clone() };
    let path = || "notes/today.txt".to_owned();
    let version = FileVersion {
        id: 12,
        path: path(),
        shown: path(),
        bytes: 12,
        digest: digest(1),
        kept_at: AT.to_owned(),
        turn: Some(id::<TurnId>("trn", 1)),
        why: FileLoss::Overwritten,
    };
    let left_out = FileLeftOut { shown: "video.mp4".to_owned(), why: NoCopy::FileBytes };
    let history = FileHistory {
        versions: vec![version.clone()],
        more: false,
        copied_at: Some(AT.to_owned()),
        turn: Some(id::<TurnId>("trn", 1)),
        left_out: vec![left_out.clone()],
        left_out_total: 1,
        failure: Some("no space left on device".to_owned()),
    };
    let restore = FileRestore { path: path(), version: Some(12), to: Some("notes/old.txt".to_owned()) };
    let restored = FileRestored {
        session_id: session_id(),
        path: "notes/old.txt".to_owned(),
        version: 12,
        bytes: 12,
        digest: digest(1),
        replaced: Some(13),
    };
    let named = NewConversation { speak_as: Some("loopback:alice-work".to_owned()), thread: Some("work".to_owned()) };
    vec![
        shape("operator.file_entry", file.clone()),
        shape("operator.files", FileList { files: vec![file, link], more: false }),
        shape(
            "operator.file_stored",
            FileStored { session_id: session_id(), path: path(), bytes: 12, digest: digest(1) },
        ),
        shape("operator.file_removed", FileRemoved { session_id: session_id(), path: path(), bytes: 12 }),
        shape("operator.file_version", version.clone()),
        shape("operator.file_left_out", left_out.clone()),
        shape("operator.file_history", history.clone()),
        shape(
            "operator.file_history.bare",
            FileHistory { versions: vec![], copied_at: None, turn: None, left_out: vec![], failure: None, ..history },
        ),
        shape("operator.file_restore", restore.clone()),
        shape("operator.file_restore.bare", FileRestore { version: None, to: None, ..restore }),
        shape("operator.file_restored", restored),
        shape("operator.new_conversation.bare", NewConversation::default()),
        shape("operator.new_conversation", named),
        shape("operator.conversation", Conversation { session_id: session_id() }),
    ]
}
