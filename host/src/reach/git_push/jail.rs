//! The jail in which git reads a repository of the workspace: its commits, and the pack of a push.
//!
//! It has no gateway, so git reaches nothing. Everything that it says is checked by [`super::history`] and [`super::objects`].

use super::Arguments;
use super::changes::Range;
use super::history::{Hash, Log};
use super::objects::Objects;
use crate::reach::network_command::CommandJails;
use crate::sessions::store::Session;
use ironclaw_contract::seam::limits::UPLOAD_BYTES_MAX;
use ironclaw_contract::seam::link::path::WORKSPACE;
use ironclaw_jail::client::{Client, Streams};
use ironclaw_jail::launcher::{Exit, link};
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, timeout_at};

/// Branches of the server that git gets as commits to leave out.
const KNOWN_MAX: usize = 400;
/// Bytes of the output: a pack, and the commits.
const OUTPUT_BYTES_MAX: usize = UPLOAD_BYTES_MAX as usize + (8 << 20);

/// Reads a repository. Its arguments: directory, commit, branch, `workspace` or `server`, and the commits that the server has; the first of
/// them is that of the branch, or `-`.
const SCRIPT: &str = r#"
exec 2>/dev/null
set -eu
cd -- "$1"
g() { git -c safe.directory='*' -c core.hooksPath=/dev/null -c core.fsmonitor=false "$@"; }
new=$(g rev-parse --verify --end-of-options "$2^{commit}")
branch=$3 from=$4
shift 4
if [ "$from" = workspace ]; then
    old=$(g rev-parse --verify --quiet "refs/remotes/origin/$branch^{commit}" || echo -)
    set -- "$old" $(g for-each-ref --count=400 --format='%(objectname)' refs/remotes/origin)
fi
echo "new $new"
if [ "$1" != - ]; then echo "old $1"; fi
had=
for one in "$@"; do
    if [ "$one" != - ] && g cat-file -e "$one^{commit}"; then
        had="$had $one"
        echo "known $one"
    fi
done
echo commits
g rev-list --max-count=4000 "$new" $had | g cat-file --batch
echo pack
if [ "$from" = server ]; then
    { echo "$new"; for one in $had; do echo "^$one"; done; } | g pack-objects --revs --stdout -q
fi
"#;

/// Reads the objects of a diff. Its arguments: directory, the commit of the branch before or `-`, and the commits of the push, the newest
/// first. git only compares the names of directories and files; the host compares the rest. A file over 1 MiB, or over 8 MiB together with
/// those before it, is named only.
const DIFF_SCRIPT: &str = r#"
exec 2>/dev/null
set -eu
cd -- "$1"
g() { git -c safe.directory='*' -c core.hooksPath=/dev/null -c core.fsmonitor=false "$@"; }
d() { g diff-tree -r -t --no-commit-id --no-renames --no-ext-diff --no-textconv --ignore-submodules=none "$@"; }
old=$2
shift 2
list=$(mktemp)
{
    for one in "$@"; do
        echo "$one^{tree}"
        for parent in $(g rev-parse "$one^@"); do echo "$parent"; echo "$parent^{tree}"; done
    done
    if [ "$old" != - ]; then echo "$old"; echo "$old^{tree}"; fi
    printf '%s\n' "$@"
    {
        printf '%s\n' "$@" | d --stdin -m --root
        if [ "$old" != - ]; then d "$old" "$1"; fi
    } | sed -n 's/^:[0-7]* [0-7]* \([0-9a-f]*\) \([0-9a-f]*\) .*/\1\n\2/p'
} | sort -u | g cat-file --batch-check='%(objectname) %(objecttype) %(objectsize)' | {
    sum=0
    while read -r id kind size; do
        case $kind in
        commit | tree) echo "$id" ;;
        blob)
            if [ "$size" -gt 1048576 ] || [ $((sum + size)) -gt 8388608 ]; then
                echo "large $id $size"
            else
                sum=$((sum + size))
                echo "$id"
            fi
            ;;
        esac
    done
} | sort -u | head -n 8001 >"$list"
grep '^large' "$list" || :
grep -v ' ' "$list" | g cat-file --batch
"#;

/// The commits that the server has.
pub(super) enum Known {
    /// As the workspace says.
    Workspace,
    /// As the server says.
    Server {
        /// That of the branch.
        old: Option<Hash>,
        /// Those of all branches and tags.
        all: Vec<Hash>,
    },
}

/// Reads the commits of a push and, if the server said what it has, their pack.
pub(super) async fn read(
    jails: &dyn CommandJails,
    session: &Session,
    wanted: &Arguments,
    known: &Known,
    until: Instant,
) -> Result<Log, String> {
    let output = timeout_at(until, output(jails, session, client(wanted, known)));
    let output = output.await.map_err(|_| "git did not read the commits in time".to_owned())??;
    let mut log = Log::read(&output)?;
    // The words of the server count, and not those of the jail about it.
    if let Known::Server { old, all } = known {
        log.old.clone_from(old);
        log.known.clone_from(all);
    }
    Ok(log)
}

/// Reads the objects of the diff of a push.
pub(super) async fn objects(
    jails: &dyn CommandJails,
    session: &Session,
    directory: Option<&str>,
    range: &Range,
    until: Instant,
) -> Result<Objects, String> {
    let mut args = vec![directory.unwrap_or(".").to_owned()];
    args.push(range.old.as_ref().map_or("-".to_owned(), ToString::to_string));
    args.extend(range.commits.iter().map(ToString::to_string));
    let output = timeout_at(until, output(jails, session, git(DIFF_SCRIPT, args)));
    let output = output.await.map_err(|_| "git did not read the changes in time".to_owned())??;
    Objects::read(&output)
}

fn client(wanted: &Arguments, known: &Known) -> Client {
    let mut args = vec![wanted.directory.as_deref().unwrap_or(".").to_owned()];
    args.extend([wanted.commit.clone().unwrap_or_else(|| "HEAD".to_owned()), wanted.branch.clone()]);
    match known {
        Known::Workspace => args.push("workspace".to_owned()),
        Known::Server { old, all } => {
            args.extend(["server".to_owned(), old.as_ref().map_or("-".to_owned(), ToString::to_string)]);
            args.extend(all.iter().take(KNOWN_MAX).map(ToString::to_string));
        }
    }
    git(SCRIPT, args)
}

/// Returns the program of a script that runs git, without settings other than those of the repository.
fn git(script: &str, args: Vec<String>) -> Client {
    let environment = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", "/nonexistent"),
        ("TMPDIR", "/tmp"),
        ("LANG", "C.UTF-8"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_NO_REPLACE_OBJECTS", "1"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_TERMINAL_PROMPT", "0"),
    ];
    Client {
        program: "/bin/sh".to_owned(),
        args: ["-c", script, "sh"].into_iter().map(str::to_owned).chain(args).collect(),
        environment: environment.map(|(name, value)| (name.to_owned(), value.to_owned().into())).into(),
        directory: WORKSPACE.to_owned(),
        streams: Streams::Output,
        ..Client::default()
    }
}

/// Returns the whole output of a program that ends well. Dropping the future ends the jail.
async fn output(jails: &dyn CommandJails, session: &Session, client: Client) -> Result<Vec<u8>, String> {
    let (mut ours, theirs) = link().map_err(|error| error.to_string())?;
    let mut jailed = jails.launch(session, client, theirs).await?;
    // Without its listener, the jail has no peer.
    drop(jailed.listener.take());
    let mut output = Vec::new();
    let _ = (&mut ours).take(OUTPUT_BYTES_MAX as u64 + 1).read_to_end(&mut output).await;
    if output.len() > OUTPUT_BYTES_MAX {
        return Err(format!("the push is larger than {UPLOAD_BYTES_MAX} bytes"));
    }
    match jailed.exited().await {
        Exit::Code(0) => Ok(output),
        exit => Err(format!("git cannot read this commit of the repository in the workspace ({exit})")),
    }
}
