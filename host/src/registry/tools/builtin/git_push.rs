//! `git_push`: commits for a granted repository. The host reads them, and writes what they are before the judgement. The run compares
//! these arguments with the commits that it sends, which fix the diff.

use crate::registry::tools::declared::{Argument, Declared, by_host, words};
use crate::registry::tools::place::{OutsideTool, Place};
use crate::registry::tools::tool::{Held, Tool};
use ironclaw_judge::Class;
use ironclaw_judge::manifest::Reach;

pub const NAME: &str = "git_push";

pub(super) fn tool() -> Tool {
    let declared = Declared {
        name: NAME,
        description: "Pushes commits of a repository in the workspace to one branch of a granted repository. The host reads the commits, a \
            person approves exactly these, and the host sends them. Fetch the branch with network_command before.",
        held: Held::Automatic("run_command and a grant with pushes"),
        place: Place::Outside(OutsideTool::GitPush),
        class: Class::Send,
        also: &[],
        reach: Reach::Outside,
        reversible: false,
        effect: "pushes {summary} to the branch {branch} of {url}, which is at {over}; the diff has the digest {diff}",
        arguments: vec![
            Argument::floor("url", words("The https address of the repository.")).outward().required(),
            Argument::floor("branch", words("The branch that changes, such as main.")).outward().required(),
            Argument::free("directory", words("The repository in the workspace; the workspace itself if absent.")),
            Argument::floor("commit", words("The commit; HEAD if absent.")).outward(),
            Argument::free("over", by_host("string", "The commit of the branch before.")),
            Argument::content("commits", by_host("string", "The commits.")).outward(),
            Argument::free("summary", by_host("string", "The numbers of the changes.")),
            Argument::free("changes", by_host("string", "The changed files.")),
            Argument::free("diff", by_host("string", "The digest of the diff.")),
        ],
    };
    declared.into()
}
