//! MCP servers for tests: the example `mcp_server` of the crate `ironclaw-mcp` over HTTP, and a program for a jail.

use super::jail_fixture::example;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A manifest that makes `echo` a tool that only reads.
pub(crate) const ECHO_READS: &str = "[[tool]]\nname = \"echo\"\nclass = \"read\"\nreach = \"outside\"\n\
    effect = \"gives {text} back\"\narguments.text = { rule = \"free\" }\n";

/// A server on loopback, which ends with the value.
pub(crate) struct HttpServer {
    pub(crate) url: String,
    process: Child,
    count: PathBuf,
    cancelled: PathBuf,
    _directory: tempfile::TempDir,
}

impl HttpServer {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (count, cancelled) = (directory.path().join("count"), directory.path().join("cancelled"));
        let program = example("mcp_server");
        let mut process = Command::new(&program)
            .args(["--http", "0", "--count-file"])
            .arg(&count)
            .arg("--cancelled-file")
            .arg(&cancelled)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{}: {error}; `cargo build -p ironclaw-mcp --example mcp_server` makes it", program.display())
            });
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("a pipe")).read_line(&mut line).expect("its address");
        Self { url: line.trim().to_owned(), process, count, cancelled, _directory: directory }
    }

    /// Returns the number of calls of `count` that reached the server.
    pub(crate) fn counted(&self) -> u64 {
        std::fs::metadata(&self.count).map_or(0, |found| found.len())
    }

    /// Returns the number of requests that the host cancelled.
    pub(crate) fn cancelled(&self) -> u64 {
        std::fs::metadata(&self.cancelled).map_or(0, |found| found.len())
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The program of a server for a jail, which has only the programs of the machine: a script for perl.
const SCRIPT: &str = r#"
use strict; use warnings; use IO::Socket::INET; use JSON::PP;
$| = 1;
my $json = JSON::PP->new->canonical->utf8;
my ($here) = $0 =~ m{^(.*)/};
if (open(my $starts, ">>", "$here/starts")) { print $starts "."; close $starts } exit 4 if -e "$here/broken";
sub tool { my ($name, @fields) = @_;
    return { name => $name, description => -e "/state/changed" ? "Another tool $name." : "Tool $name.", inputSchema => { type => "object",
        properties => { map { $_ => { type => "string" } } @fields } } } }
sub act { my ($tool, $with) = @_;
    if ($tool eq "look") { opendir(my $at, $with->{at}) or return "cannot look: $!"; return join " ", sort grep { !/^\./ } readdir $at }
    if ($tool eq "connect") {
        my $to = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $with->{port}, Timeout => 2);
        return $to ? "connected" : "refused by the jail: $@ $!" }
    if ($tool eq "count") {
        my $file = "/state/count"; my $count = 0;
        if (open my $in, "<", $file) { $count = <$in>; }
        open my $out, ">", $file or return "cannot write: $!"; print $out ++$count; close $out; return "count $count" }
    if ($tool eq "ask") {
        my @send = $with->{bytes} ? ("--data", "x" x $with->{bytes}) : ();
        open my $said, "-|", "sh", "-c", 'exec "$@" 2>&1', "sh", "curl", "--silent", "--show-error", "--cacert", "$here/ca.pem", @send, $with->{url} or return "no curl: $!";
        local $/; return <$said> // "" }
    if ($tool eq "end") { exit 3 }
    if ($tool eq "hang" || $tool eq "act") {
        open my $out, ">>", "/state/hung" or return "cannot write: $!"; print $out "."; close $out;
        sleep 1000 if $tool eq "hang"; return "acted" }
    if ($tool eq "hung") { return "hung " . ((-s "/state/hung") || 0) }
    if ($tool eq "change") {
        open my $out, ">", "/state/changed" or return "cannot write: $!"; close $out;
        print $json->encode({ jsonrpc => "2.0", method => "notifications/tools/list_changed" }), "\n"; return "it changed" }
    return "unknown" }
while (my $line = <STDIN>) {
    my $asked = $json->decode($line); my $id = $asked->{id}; next unless defined $id;
    my %answer = (jsonrpc => "2.0", id => $id); my $method = $asked->{method};
    if ($method eq "initialize") {
        $answer{result} = { protocolVersion => "2025-06-18", capabilities => { tools => {} }, serverInfo => { name => "script", version => "1" } } }
    elsif ($method eq "tools/list" && -e "$here/leak") { $answer{error} = { code => -32001, message => "the key $ENV{KEY} is too old" } }
    elsif ($method eq "tools/list") { $answer{result} = { tools => [tool("look", "at"), tool("connect", "port"), tool("ask", "url", "bytes"), tool("count"), tool("end"), tool("change"), tool("hang"), tool("hung"), tool("act")] } }
    elsif ($method eq "tools/call") {
        my $text = act($asked->{params}{name}, $asked->{params}{arguments} || {});
        $answer{result} = { content => [{ type => "text", text => $text }], isError => JSON::PP::false } }
    else { $answer{error} = { code => -32601, message => "unknown method" } }
    print $json->encode(\%answer), "\n";
}
"#;

/// The source of a server in Python, which its function `main` runs: tools that show the length or the value of a variable.
pub(crate) const PYTHON: &str = r#"
import json, os, sys
def write(answer):
    print(json.dumps(answer), flush=True)
def tool(name):
    schema = {"type": "object", "properties": {"of": {"type": "string"}}}
    return {"name": name, "description": "Shows a variable.", "inputSchema": schema}
def main():
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        answer = {"jsonrpc": "2.0", "id": asked["id"]}
        if asked["method"] == "initialize":
            about = {"name": "python", "version": "1"}
            answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
        elif asked["method"] == "tools/list":
            answer["result"] = {"tools": [tool("length"), tool("value")]}
        elif asked["method"] == "tools/call":
            value = os.environ.get(asked["params"]["arguments"]["of"], "")
            text = str(len(value)) if asked["params"]["name"] == "length" else value
            answer["result"] = {"content": [{"type": "text", "text": text}]}
        else:
            answer["error"] = {"code": -32601, "message": "unknown method"}
        write(answer)
"#;

/// Returns a directory with the program `server.pl`, which other users may read.
pub(crate) fn program() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::Builder::new().prefix("server").tempdir().expect("a temporary directory");
    let readable = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(directory.path(), readable(0o755)).expect("set");
    let script = directory.path().join("server.pl");
    std::fs::write(&script, SCRIPT).expect("written");
    std::fs::set_permissions(&script, readable(0o644)).expect("set");
    directory
}
