//! What waits for people, in one life, whatever its kind.
//!
//! A kind brings its checks, its facts, its page and its effect ([`Kind`]); the rest is here, once: who is told, who may decide, how
//! approvals count, how something ends, and who learns of it. Decides nothing by itself.
//!
//! ```text
//! asked ──▶ Pending ──people──▶ Approved ──▶ Running ──▶ Done | Queued | Failed | Unknown
//!              ├──▶ Rejected | Expired | Withdrawn          └──▶ Expired | Withdrawn
//!              └──a restore──▶ Doubtful
//! ```

mod ballot;
mod counted;
pub mod decide;
mod due;
mod ending;
mod gateway;
mod kind;
mod notices;
mod presence;
mod steps;
pub mod words;

pub use ballot::{Ballot, ValidApproval};
pub use counted::count;
pub use due::EndWorker;
pub use ending::{Doubted, doubt_all, end, end_active, erase, inform};
pub(in crate::gateway) use ending::{close, outcome};
pub use gateway::Gateway;
pub use ironclaw_store::tables::waiting::{Ending, Filter, Scope, Status, Waiting, WaitingId, find, open_count};
pub use kind::{Kind, Rights, Shown, Sight};
pub use notices::asked;
pub use presence::Presence;
pub use steps::words_of;
