//! The built-in tools, one file each: description, arguments with their rules, class, and the place where it runs.

pub mod ask_user_question;
pub mod find_tools;
pub mod git_push;
pub mod http_fetch;
pub mod list_dir;
pub mod network_command;
pub mod read_file;
pub mod read_skill;
pub mod recall;
pub mod remember;
pub mod request_change;
pub mod run_command;
pub mod schedule_manage;
pub mod schedule_task;
pub mod search_files;
pub mod send_file;
pub mod send_message;
pub mod skill_install;
pub mod write_file;

use super::tool::Tool;

/// Returns every built-in tool, in the order in which a model reads them.
pub(super) fn all() -> Vec<Tool> {
    vec![
        read_file::tool(),
        write_file::tool(),
        list_dir::tool(),
        search_files::tool(),
        remember::tool(),
        recall::tool(),
        run_command::tool(),
        network_command::tool(),
        git_push::tool(),
        http_fetch::tool(),
        find_tools::tool(),
        read_skill::tool(),
        schedule_manage::tool(),
        send_message::tool(),
        send_file::tool(),
        schedule_task::tool(),
        ask_user_question::tool(),
        skill_install::tool(),
        request_change::tool(),
    ]
}
