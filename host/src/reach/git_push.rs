//! Exact pushes of git: the commits that a person reads are those that a branch gets.
//!
//! Never starts git with the network, and never trusts its words: a commit counts only by the hash of its own bytes. The host asks the
//! server and sends the push by itself, once. See [`history`] for the proof of the commits, [`diff`] for the diff that a person reads, and
//! [`wire`] for the protocol of the server.

mod changes;
mod diff;
mod history;
mod jail;
mod objects;
mod wire;

pub use diff::Diff;

use crate::reach::jail_network::{Fetchers, GrantedHost};
use crate::reach::network_command::CommandJails;
use crate::sessions::store::Session;
use crate::turns::calls::{ResultBody, http};
use changes::{Changes, Range};
use history::{Hash, Log};
use ironclaw_contract::canonical::Digest;
use ironclaw_judge::egress::{CanonicalUrl, Commands, Grant, Loopback, Request, RequestText, judge};
use ironclaw_net::fetch::{Fetched, Limits, NotFetched};
use ironclaw_operator::DenialCode;
use ironclaw_store::refusal::Refusal;
use ironclaw_text::excerpt::start;
use ironclaw_text::lookalike;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// Longest time to read the commits of one push.
pub const READ_TIME_MAX: Duration = Duration::from_secs(15);
/// Bytes of the list of branches of a server.
const REFS_BYTES_MAX: usize = 4 << 20;
/// Bytes of the report of a server.
const REPORT_BYTES_MAX: usize = 64 << 10;
/// The type of the body of a push.
const CONTENT_TYPE: &str = "application/x-git-receive-pack-request";
/// The hash of a branch that does not exist.
const NO_COMMIT: &str = "0000000000000000000000000000000000000000";

/// The arguments of a call. The host writes `commit`, `over`, `commits`, `summary`, `changes` and `diff`; other values of a model are
/// replaced before the judgement.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    url: String,
    branch: String,
    directory: Option<String>,
    commit: Option<String>,
    over: Option<String>,
    commits: Option<String>,
    diff: Option<Digest>,
    // The digest of the diff covers both.
    #[serde(rename = "summary")]
    _summary: Option<String>,
    #[serde(rename = "changes")]
    _changes: Option<String>,
}

/// A push that may run.
pub struct Order {
    /// The session whose files it reads.
    pub session: Session,
    /// The arguments that people read.
    pub arguments: Arguments,
    /// The hosts that are granted for commands.
    pub hosts: Vec<GrantedHost>,
    /// Whether a host of this machine may be granted.
    pub loopback: Loopback,
}

/// The record of a push.
#[derive(Debug, Default)]
pub struct Sent {
    /// Requests to the server.
    pub requests: u64,
    /// Bytes of the push.
    pub bytes: u64,
    /// The digest of what was sent; `None` if nothing was.
    pub digest: Option<Digest>,
}

impl Arguments {
    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// A sentence about the first wrong argument.
    pub fn read(arguments: &Map<String, Value>) -> Result<Self, String> {
        let read = Self::deserialize(arguments).map_err(|error| error.to_string())?;
        if !wire::is_branch(&read.branch) {
            return Err(format!("{:?} is not the plain name of a branch, such as main", shortened(&read.branch)));
        }
        if read.url.contains(['?', '#']) {
            return Err("the URL of a repository has no query".to_owned());
        }
        Ok(read)
    }

    /// Returns the URL of the repository in the one form in which requests have it.
    fn url_as_sent(&self, network: &http::Network) -> Result<String, String> {
        let url =
            CanonicalUrl::parse_for(&self.url, network.loopback, &network.grants).map_err(|error| error.to_string())?;
        Ok(url.as_str().trim_end_matches('/').to_owned())
    }

    /// Returns the URL of the repository without a slash at its end.
    fn repository(&self) -> &str {
        self.url.trim_end_matches('/')
    }

    fn refs_url(&self) -> String {
        format!("{}/info/refs?service=git-receive-pack", self.repository())
    }

    fn push_url(&self) -> String {
        format!("{}/git-receive-pack", self.repository())
    }
}

/// Writes the commits that the push of a call has into its arguments, each proved by its hash. Nothing leaves the machine.
///
/// # Errors
/// A refusal with the reason; the text may quote the model.
pub async fn prepare(
    jails: &dyn CommandJails,
    session: &Session,
    object: &mut Map<String, Value>,
    network: &http::Network,
) -> Result<(), Refusal> {
    let malformed = |words: String| Refusal::new(DenialCode::CallMalformed, words);
    let mut wanted = Arguments::read(object).map_err(malformed)?;
    wanted.url = wanted.url_as_sent(network).map_err(malformed)?;
    let granted = network.grants.iter().filter(|grant| grant.commands() == Some(Commands::Git));
    admitted(granted, &wanted, network.loopback, None)?;
    let refused = |words: String| Refusal::new(DenialCode::EgressPush, words);
    let until = Instant::now() + READ_TIME_MAX;
    let log = jail::read(jails, session, &wanted, &jail::Known::Workspace, until).await.map_err(refused)?;
    let commits = log.exact().map_err(refused)?;
    let range = range(log.old.clone(), &commits).map_err(refused)?;
    let diff = written(jails, session, wanted.directory.as_deref(), range, until).await.map_err(refused)?;
    object.insert("url".to_owned(), json!(wanted.url));
    object.insert("commit".to_owned(), json!(log.new.to_string()));
    object.insert("over".to_owned(), json!(log.old.as_ref().map_or(NO_COMMIT.to_owned(), ToString::to_string)));
    object.insert("commits".to_owned(), json!(commits.join("\n")));
    object.insert("summary".to_owned(), json!(diff.summary));
    object.insert("changes".to_owned(), json!(diff.changes));
    object.insert("diff".to_owned(), json!(diff.digest));
    Ok(())
}

/// Returns the diff that the arguments of a prepared call name, written again from the commits in the workspace.
///
/// # Errors
/// A sentence, if the workspace lost a commit, or if the diff does not have the digest of the arguments.
pub async fn diff(jails: &dyn CommandJails, session: &Session, arguments: &Map<String, Value>) -> Result<Diff, String> {
    let wanted = Arguments::read(arguments)?;
    let (Some(over), Some(commits), Some(digest)) = (&wanted.over, &wanted.commits, &wanted.diff) else {
        return Err("the call has no diff".to_owned());
    };
    let old = if over == NO_COMMIT { None } else { Some(over.parse()?) };
    let lines: Vec<String> = commits.lines().map(str::to_owned).collect();
    let until = Instant::now() + READ_TIME_MAX;
    let diff = written(jails, session, wanted.directory.as_deref(), range(old, &lines)?, until).await?;
    match diff.digest == *digest {
        true => Ok(diff),
        false => Err("the diff that the workspace gives now is not the one of the call".to_owned()),
    }
}

/// Returns the commits of the lines of [`Log::exact`].
fn range(old: Option<Hash>, lines: &[String]) -> Result<Range, String> {
    let hash = |line: &String| line.split(' ').next().unwrap_or_default().parse();
    Ok(Range { old, commits: lines.iter().map(hash).collect::<Result<_, _>>()? })
}

/// Reads the objects of these commits and writes their diff.
async fn written(
    jails: &dyn CommandJails,
    session: &Session,
    directory: Option<&str>,
    range: Range,
    until: Instant,
) -> Result<Diff, String> {
    let objects = jail::objects(jails, session, directory, &range, until).await?;
    let write = move || Ok(Diff::write(&objects, &range, &Changes::find(&objects, &range)?));
    tokio::task::spawn_blocking(write).await.map_err(|error| error.to_string())?
}

/// Returns the place of the grant that admits both requests of a push; the second one with a body of this many bytes.
fn admitted<'g>(
    grants: impl Iterator<Item = &'g Grant>,
    wanted: &Arguments,
    loopback: Loopback,
    body: Option<&[u8]>,
) -> Result<&'g Grant, Refusal> {
    let all: Vec<&Grant> = grants.collect();
    let request = |method: &str, url: String, body: Option<&[u8]>| {
        let headers = body.map(|_| ("content-type".to_owned(), CONTENT_TYPE.to_owned())).into_iter().collect();
        let text = RequestText { method: method.to_owned(), url, headers, body: None, secret: None };
        Request::for_grants(&text, body, loopback, all.iter().copied())
            .map_err(|error| Refusal::new(DenialCode::CallMalformed, error.to_string()))
    };
    let requests = [request("GET", wanted.refs_url(), None)?, request("POST", wanted.push_url(), body)?];
    let found = all.iter().find(|grant| grant.is_of(requests[0].url())).copied();
    let one = found.map(std::slice::from_ref).unwrap_or_default();
    for request in requests {
        let request = request.with_secret(found.and_then(|grant| grant.secret().cloned()));
        if let Err(missing) = judge(one, &request, &|_| false) {
            let step = "ironctl egress grant AGENT HOST --commands git --push --path /OWNER/REPOSITORY";
            let words = format!("{}; the next step: `{step}`", missing.sentence());
            return Err(Refusal::new(http::code_of(&missing), words));
        }
    }
    found.ok_or_else(|| Refusal::new(DenialCode::EgressNewHost, "the host is not granted".to_owned()))
}

/// Pushes what people read, once.
pub async fn run(jails: &dyn CommandJails, fetchers: &Fetchers, order: &Order, left: Duration) -> (ResultBody, Sent) {
    let mut sent = Sent::default();
    let until = Instant::now() + left;
    let push = Push { jails, fetchers, order, until };
    let body = match push.run(&mut sent).await {
        Ok(text) => ResultBody::done(text),
        Err(body) => body,
    };
    (body, sent)
}

struct Push<'a> {
    jails: &'a dyn CommandJails,
    fetchers: &'a Fetchers,
    order: &'a Order,
    until: Instant,
}

impl Push<'_> {
    async fn run(&self, sent: &mut Sent) -> Result<String, ResultBody> {
        let wanted = &self.order.arguments;
        let nothing = |words: String| ResultBody::failed(format!("failed: {words}; nothing was pushed"));
        let (new, over, shown) = match (&wanted.commit, &wanted.over, &wanted.commits) {
            (Some(new), Some(over), Some(shown)) => (new, over, shown),
            _ => return Err(nothing("the call does not name its commits".to_owned())),
        };
        let new: Hash = new.parse().map_err(nothing)?;
        let host = self.host(None).map_err(nothing)?;
        sent.requests += 1;
        let listed = self.send("GET", &wanted.refs_url(), host, None, REFS_BYTES_MAX).await;
        // A branch does not change before the second request.
        let listed = listed.map_err(|error| ResultBody::failed(http::no_answer(&error).text))?;
        let server = wire::branches(&whole(&listed).map_err(nothing)?).map_err(nothing)?;
        let old = server.get(&format!("refs/heads/{}", wanted.branch));
        let found = old.map_or(NO_COMMIT.to_owned(), ToString::to_string);
        if found != *over {
            let words = format!(
                "the branch {} of the server is at {found}, and not at {over}: fetch it with git, and ask for a new push",
                wanted.branch
            );
            return Err(nothing(words));
        }
        let known = jail::Known::Server { old: old.cloned(), all: server.values().cloned().collect() };
        let log = jail::read(self.jails, &self.order.session, wanted, &known, self.until).await.map_err(nothing)?;
        let pack = same(&log, &new, shown).map_err(nothing)?;
        let body = wire::push(over, &new, &wanted.branch, pack);
        let host = self.host(Some(&body)).map_err(nothing)?;
        sent.requests += 1;
        sent.bytes = body.len() as u64;
        sent.digest = Some(Digest::of(&body));
        let answered = self.send("POST", &wanted.push_url(), host, Some(body), REPORT_BYTES_MAX).await;
        let answered = answered.map_err(|error| http::no_answer(&error))?;
        let unknown = |words: String| {
            ResultBody::unknown(format!(
                "unknown: {}; it is unknown if the branch changed",
                lookalike::neutralise(&words)
            ))
        };
        match wire::report(&whole(&answered).map_err(unknown)?, &wanted.branch).map_err(unknown)? {
            wire::Report::Changed => {
                Ok(format!("pushed: the branch {} of {} is at {new}", wanted.branch, wanted.repository()))
            }
            wire::Report::Refused(words) => {
                Err(ResultBody::failed(format!("failed: {}", lookalike::neutralise(&words))))
            }
        }
    }

    /// Returns the granted host of the repository. A grant may have changed since the approval.
    fn host(&self, body: Option<&[u8]>) -> Result<&GrantedHost, String> {
        let hosts = || self.order.hosts.iter().filter(|host| host.grant.commands() == Some(Commands::Git));
        let grant = admitted(hosts().map(|host| &host.grant), &self.order.arguments, self.order.loopback, body);
        let grant = grant.map_err(|refusal| format!("{}: {}", refusal.code, refusal.message))?;
        hosts().find(|host| host.grant == *grant).ok_or_else(|| "its grant is gone".to_owned())
    }

    async fn send(
        &self,
        method: &str,
        url: &str,
        host: &GrantedHost,
        body: Option<Vec<u8>>,
        body_bytes_max: usize,
    ) -> Result<Fetched, NotFetched> {
        let granted = host.grant.host().to_string();
        let content = body.as_ref().map(|_| ("content-type", CONTENT_TYPE));
        let request = ironclaw_net::fetch::Request {
            method: method.parse().expect("a method of the closed list"),
            url,
            headers: content.into_iter().collect(),
            body,
            credential: host.credential(&granted),
        };
        let whole = self.until.saturating_duration_since(Instant::now());
        let fetcher = self.fetchers.for_grant(Some(&host.grant), self.order.loopback);
        fetcher.fetch(request, Limits { begin: whole, whole, body_bytes_max }).await
    }
}

/// Returns the pack, if it adds only commits that people read.
fn same<'l>(log: &'l Log, new: &Hash, shown: &str) -> Result<&'l [u8], String> {
    if log.new != *new {
        return Err("the workspace gave another commit".to_owned());
    }
    let commits = log.exact()?;
    match commits.iter().find(|commit| !shown.lines().any(|line| line == commit.as_str())) {
        Some(commit) => Err(format!("the push would have a commit that the approval does not show: {commit}")),
        None if log.pack.starts_with(b"PACK") => Ok(&log.pack),
        None => Err("git made no pack of the commits".to_owned()),
    }
}

/// Returns the whole body of a good answer.
fn whole(fetched: &Fetched) -> Result<Vec<u8>, String> {
    if fetched.status != 200 {
        return Err(format!("the server answered with status {}", fetched.status));
    }
    if fetched.is_truncated() {
        return Err("the answer of the server did not arrive completely".to_owned());
    }
    Ok(fetched.body.clone())
}

/// Returns the beginning of words of others.
fn shortened(text: &str) -> &str {
    start(text, 80)
}
