//! Published tools for packages in commands: each installs from a server of the test, and writes no address of the gateway.
//!
//! They come from the registries of npm and PyPI and from the sources of apt, so the test runs by name: `.ci/long commands`. The manual
//! `network-for-commands.md` has a row for each.

use crate::e2e::command_tools::writes_no_address;
use crate::e2e::packages::registry::Registry;
use crate::support::git_site::{GitSite, git};
use crate::support::host_fixture::{Build, TestHost};
use crate::support::site::LOOPBACK;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::process::Command;

/// A tool, what it does, a file that is committed, and a text that this file has; `PORT` is that of the registry.
struct Tool {
    command: String,
    file: &'static str,
    has: &'static str,
}

/// The name of the registry in commands. Go asks no proxy for `localhost` and for addresses of loopback.
const HOST: &str = "registry.localhost";

fn tools(registry: u16, git: u16) -> Vec<Tool> {
    let modules = "/usr/lib/node_modules";
    let tool = |command: String, file, has| Tool { command, file, has };
    let index = format!("http://127.0.0.1:{git}/ada/index.git");
    let source =
        format!("[source.crates-io]\\nreplace-with = \\\"own\\\"\\n[source.own]\\nregistry = \\\"{index}\\\"\\n");
    let go = format!("GOPROXY=http://{HOST}:{registry}/go GONOSUMDB=example.org GOFLAGS=-modcacherw");
    vec![
        tool("mkdir pnpm && cd pnpm && pnpm add --ignore-scripts tulip && node node_modules/tulip/cli.js".into(), "pnpm/pnpm-lock.yaml", "tulip@1.2.3"),
        tool(
            format!("mkdir y1 && cd y1 && echo '{{}}' > package.json && node {modules}/yarn/bin/yarn.js add tulip"),
            "y1/yarn.lock",
            "http://registry.localhost:PORT/npm/tulip.tgz",
        ),
        tool(
            format!(
                "mkdir y4 && cd y4 && echo '{{}}' > package.json && touch yarn.lock && node {modules}/@yarnpkg/cli-dist/bin/yarn.js add tulip"
            ),
            "y4/yarn.lock",
            "tulip@npm:1.2.3",
        ),
        tool(
            "mkdir uv && cd uv && uv init --bare --name x . && uv add rose && uv sync && uv pip install --target t rose".into(),
            "uv/uv.lock",
            "http://registry.localhost:PORT/files/rose-1.2.3-py3-none-any.whl",
        ),
        tool(
            format!(
                "mkdir po && cd po && poetry init -n --name x && poetry source add --priority=primary own \
                 http://{HOST}:{registry}/simple/ && poetry add rose && poetry install --no-root"
            ),
            "po/poetry.lock",
            "http://registry.localhost:PORT/simple",
        ),
        tool(
            format!("mkdir gomod && cd gomod && export {go} && go mod init example.org/x && go get example.org/fern && go mod download"),
            "gomod/go.sum",
            "example.org/fern v1.2.3",
        ),
        tool(
            format!(
                "cargo init --vcs none --name x cargo && cd cargo && mkdir .cargo && printf \"{source}\" > .cargo/config.toml && \
                 cargo add moss && cargo vendor --respect-source-config && test -e vendor/moss/Cargo.toml"
            ),
            "cargo/Cargo.lock",
            "registry+https://github.com/rust-lang/crates.io-index",
        ),
        tool(
            format!(
                "mkdir gem && cd gem && printf 'source \"http://{HOST}:{registry}\"\\ngem \"fern\"\\n' > Gemfile && \
                 bundle config set --local path v && bundle install"
            ),
            "gem/Gemfile.lock",
            "remote: http://registry.localhost:PORT/",
        ),
    ]
}

/// Runs a script of Python, which prints bytes.
fn python(script: &str) -> Vec<u8> {
    let output = Command::new("python3").args(["-c", script]).output().expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Publishes the module `example.org/fern` for go.
fn publish_module(registry: &Registry) {
    let of_module = "module example.org/fern\n\ngo 1.17\n";
    let archive = python(&format!(
        "import io, sys, zipfile\nb = io.BytesIO()\nz = zipfile.ZipFile(b, 'w')\np = 'example.org/fern@v1.2.3/'\n\
         z.writestr(p + 'go.mod', {of_module:?})\nz.writestr(p + 'fern.go', 'package fern\\n')\nz.close()\n\
         sys.stdout.buffer.write(b.getvalue())"
    ));
    let info = r#"{"Version":"v1.2.3","Time":"2020-01-01T00:00:00Z"}"#;
    for (name, content) in [
        ("list", b"v1.2.3\n".to_vec()),
        ("v1.2.3.info", info.into()),
        ("v1.2.3.mod", of_module.into()),
        ("v1.2.3.zip", archive),
    ] {
        registry.put(&format!("/go/example.org/fern/@v/{name}"), content);
    }
}

/// Publishes the crate `moss` for cargo, with an index in git.
fn publish_crate(registry: &Registry, site: &GitSite) {
    let archive = python(
        "import io, sys, tarfile\nb = io.BytesIO()\nt = tarfile.open(fileobj=b, mode='w:gz')\n\
         def add(p, s):\n i = tarfile.TarInfo('moss-1.2.3/' + p)\n i.size = len(s)\n t.addfile(i, io.BytesIO(s))\n\
         add('Cargo.toml', b'[package]\\nname = \"moss\"\\nversion = \"1.2.3\"\\n')\nadd('src/lib.rs', b'')\nt.close()\n\
         sys.stdout.buffer.write(b.getvalue())",
    );
    let digest: String = Sha256::digest(&archive).iter().map(|byte| format!("{byte:02x}")).collect();
    registry.put("/crates/moss/1.2.3/download", archive);
    let config = json!({ "dl": format!("http://{HOST}:{}/crates", registry.port) });
    let bare = site.repository("ada/index.git", "config.json", &config.to_string());
    let work = bare.with_file_name("index.git.work");
    std::fs::create_dir_all(work.join("mo/ss")).expect("made");
    let entry =
        json!({ "name": "moss", "vers": "1.2.3", "deps": [], "cksum": digest, "features": {}, "yanked": false });
    std::fs::write(work.join("mo/ss/moss"), format!("{entry}\n")).expect("written");
    git(&work, &["add", "mo"]);
    git(&work, &["commit", "--quiet", "--message", "moss"]);
    git(&work, &["push", "--quiet", bare.to_str().expect("text"), "HEAD:refs/heads/main"]);
}

/// The metadata of the gem `fern`.
const GEM: &str = "--- !ruby/object:Gem::Specification
name: fern
version: !ruby/object:Gem::Version
  version: 1.2.3
platform: ruby
authors: [a]
summary: s
files: [lib/fern.rb]
require_paths: [lib]
required_ruby_version: !ruby/object:Gem::Requirement
  requirements: [['>=', !ruby/object:Gem::Version {version: '0'}]]
required_rubygems_version: !ruby/object:Gem::Requirement
  requirements: [['>=', !ruby/object:Gem::Version {version: '0'}]]
specification_version: 4
";

/// Publishes the gem `fern` for bundler, in the compact index.
fn publish_gem(registry: &Registry) {
    let archive = python(&format!(
        "import gzip, io, sys, tarfile\ndef tar(files):\n b = io.BytesIO()\n\
         \x20t = tarfile.open(fileobj=b, mode='w', format=tarfile.USTAR_FORMAT)\n for n, c in files:\n\
         \x20 i = tarfile.TarInfo(n)\n  i.size = len(c)\n  t.addfile(i, io.BytesIO(c))\n t.close()\n return b.getvalue()\n\
         data = gzip.compress(tar([('lib/fern.rb', b'')]))\n\
         sys.stdout.buffer.write(tar([('metadata.gz', gzip.compress({GEM:?}.encode())), ('data.tar.gz', data)]))"
    ));
    let digest: String = Sha256::digest(&archive).iter().map(|byte| format!("{byte:02x}")).collect();
    let info = format!("---\n1.2.3 |checksum:{digest}\n");
    let of_info = python(&format!("import hashlib, sys\nsys.stdout.write(hashlib.md5({info:?}.encode()).hexdigest())"));
    let versions = format!("created_at: 2020-01-01T00:00:00Z\n---\nfern 1.2.3 {}\n", String::from_utf8_lossy(&of_info));
    registry.put("/versions", versions.into_bytes());
    registry.put("/info/fern", info.into_bytes());
    registry.put("/gems/fern-1.2.3.gem", archive);
}

#[test]
#[ignore = "it needs the registries of npm and PyPI and the sources of apt; `.ci/long commands` runs it"]
fn published_tools_install_and_write_no_address_of_the_gateway() {
    let (registry, site) = (Registry::named(HOST), GitSite::start());
    registry.publish("tulip", Path::new("/workspace/script"));
    registry.publish_wheel("rose", "def main(): pass\n");
    publish_module(&registry);
    publish_crate(&registry, &site);
    publish_gem(&registry);
    let host = TestHost::own(Build::Plain).configured(LOOPBACK).started_with("a");
    host.change("a", "enabled_tools", &json!({ "add": ["run_command"] }));
    host.ctl(&["agent", "install", "a", "uv", "poetry", "--pypi", "--yes"]).ok();
    host.ctl(&["agent", "install", "a", "pnpm", "yarn", "@yarnpkg/cli-dist", "--npm", "--yes"]).ok();
    host.ctl(&["agent", "install", "a", "cargo", "golang-go", "ruby-bundler", "--yes"]).ok();
    // The session and its workspace.
    host.say("a", "run true");
    let at = format!("{HOST}:{}", registry.port);
    let of_git = format!("127.0.0.1:{}", site.port);
    host.ctl(&["egress", "grant", "a", &of_git, "--commands", "git", "--path", "/ada/index.git", "--yes"]).ok();
    let grant = |of_use: &str, paths: &[&str]| {
        let paths: Vec<_> = paths.iter().flat_map(|path| ["--path", path]).collect();
        host.ctl(&[&["egress", "grant", "a", &at, "--commands", of_use, "--yes"][..], &paths].concat()).ok();
    };
    let workspace = host.session_directory().join("workspace");
    for Tool { command, file, has } in tools(registry.port, site.port) {
        match file.split('/').next() {
            Some("pnpm" | "y1" | "y4") => grant("npm", &["/npm/{package}"]),
            Some("uv" | "po") => grant("pip", &["/simple/{package}/", "/files/{file}"]),
            Some("gem") => grant("other", &["/versions", "/info/{gem}", "/gems/{file}"]),
            Some("gomod") => grant("other", &["/go/example.org/fern/@v/{file}"]),
            _ => grant("other", &["/crates/{crate}/{version}/download"]),
        }
        writes_no_address(&host, &command);
        let text = std::fs::read_to_string(workspace.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(text.contains(&has.replace("PORT", &registry.port.to_string())), "{file}: {text}");
    }
}
