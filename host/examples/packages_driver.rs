//! Driver that fetches packages like a host and prints the result as JSON.
//!
//! It is a separate program, because a launcher is forked before any thread exists, and because it can then run as any user. Only for
//! tests and experiments. See `host/tests/e2e/packages.rs`.
#![allow(clippy::print_stdout)]

use ironclaw_contract::ids::ChangeId;
use ironclaw_contract::seam::change::Packages;
use ironclaw_host::driven::packages::{self, FetchContext};
use ironclaw_jail::launcher::{self, Entries, Launcher};
use ironclaw_jail::{Client, Identity, Limits, Mount, Role, Spec, client};
use ironclaw_state::home::{Home, LayerOwner};
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [home, order] = arguments.as_slice() else {
        panic!(
            "usage: packages_driver HOME ORDER, where ORDER is {{\"config\": toml, \"agent\": id, \"apt\": […], \"npm\": […]}}"
        );
    };
    let handle =
        launcher::fork(Entries { reader: |_| 0, probe: None }).expect("the launcher is forked before any thread");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts");
    let order: Value = serde_json::from_str(order).expect("an order");
    let result = runtime.block_on(async {
        let launcher = Launcher::start(handle).expect("the launcher connects");
        match order.get("look") {
            Some(script) => look(&launcher, Path::new(home), script.as_str().expect("a script"), &order["ports"]).await,
            None => make(launcher, Path::new(home), &order).await,
        }
    });
    println!("{result}");
}

fn identity() -> Identity {
    match nix::unistd::geteuid().is_root() {
        true => Identity::Mapped { uid: 200_002, gid: 200_002 },
        false => Identity::Own,
    }
}

async fn make(launcher: Launcher, home: &Path, order: &Value) -> Value {
    let config = toml::from_str(order["config"].as_str().unwrap_or_default()).expect("settings");
    let home = Home::create(home).expect("a home");
    let agent = LayerOwner::Agent(order["agent"].as_str().expect("an agent").parse().expect("an id"));
    let names = |of: &str| serde_json::from_value(order[of].clone()).unwrap_or_default();
    let wanted = Packages { apt: names("apt"), npm: names("npm"), pypi: names("pypi") };
    let means = FetchContext { launcher, home: home.clone(), config, identity: identity() };
    let change = serde_json::from_value(order["change"].clone()).unwrap_or_else(|_| ChangeId::new());
    match packages::make(&means, &agent, change, &wanted).await {
        Ok(layer) => {
            let path = home.layer(&agent, &layer.digest);
            packages::verify(&path, &layer.digest).expect("the layer has its digest");
            json!({
                "path": path, "digest": layer.digest, "files": layer.files, "bytes": layer.bytes,
                "installed": layer.installed, "left_out": layer.left_out,
            })
        }
        Err(error) => {
            let refusal = error.refusal();
            json!({ "code": refusal.code, "message": refusal.message, "hint": refusal.hint })
        }
    }
}

/// Runs a script in the jail of a client and returns its output. With `ports`, even an empty list, it has the network of the host.
async fn look(launcher: &Launcher, work: &Path, script: &str, ports: &Value) -> Value {
    let sight = |path: &str, kind| client::BindMount { source: path.into(), target: path.to_owned(), kind };
    let client = Client {
        program: "/usr/bin/bash".to_owned(),
        args: vec!["-c".to_owned(), script.to_owned()],
        environment: vec![("PATH".to_owned(), "/usr/bin".to_owned().into())],
        directory: "/work".to_owned(),
        bind_mounts: vec![sight("/usr", client::Kind::Programs), sight("/dev/null", client::Kind::Device)],
        links: ["bin", "lib", "lib64"].map(|name| (name.to_owned(), format!("usr/{name}"))).to_vec(),
        network: serde_json::from_value(ports.clone()).ok().map(|ports| client::Network { ports }),
        streams: client::Streams::Output,
        browser: false,
    };
    let spec = Spec {
        name: "packages".to_owned(),
        role: Role::Client(client),
        mounts: vec![Mount { source: work.into(), target: "/work".to_owned(), read_only: false, granted: false }],
        system: None,
        listener: None,
        identity: identity(),
        limits: Limits::default(),
    };
    let (mut ours, theirs) = std::io::pipe().expect("a pipe");
    let jailed = launcher.launch(spec, theirs.into()).await.expect("a jail");
    let mut said = String::new();
    ours.read_to_string(&mut said).expect("the output is readable");
    json!({ "exit": jailed.exited().await, "said": said })
}
