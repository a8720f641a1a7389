//! The hosts that commands and programs address by https.

use crate::author::foreign::notes::Notes;
use crate::manifest::ENTRIES_MAX;
use ironclaw_contract::seam::change::Egress;
use ironclaw_contract::seam::egress::Commands;

const SCHEME: &str = "https://";
/// Bytes of the body of one request, for a command that sends one.
const UPLOAD_BYTES: u64 = 65_536;
/// Names that stand for others in texts.
const PLACEHOLDERS: [&str; 9] = [
    "example.com",
    "example.org",
    "example.net",
    ".example",
    ".test",
    ".invalid",
    "localhost",
    ".local",
    "yourdomain.com",
];
/// Words of a line that sends a body.
const SENDS: [&str; 8] = ["POST", ".post(", " -d ", "--data", " -F ", "PUT", ".put(", "PATCH"];
/// Bytes of a template and of the name of a host.
const TEMPLATE_BYTES_MAX: usize = 255;
const HOST_BYTES_MAX: usize = 100;
/// Slots of one template.
const SLOTS_MAX: usize = 8;

/// Adds the addresses of a line to what the skill asks for.
pub(super) fn add(egress: &mut Vec<Egress>, line: &str, path: &str, number: usize, notes: &mut Notes) {
    for (at, _) in line.match_indices(SCHEME) {
        let is_end = |c: char| c.is_whitespace() || "\"'`<>()|\\;".contains(c);
        let address = line[at + SCHEME.len()..].split(is_end).next().unwrap_or_default();
        let address = address.trim_end_matches(['.', ',', ':']);
        let Some(asked) = asked(address, SENDS.iter().any(|word| line.contains(word))) else { continue };
        notes.add(path, Some(number), format!("a request to {}: the skill asks for this host", asked.host));
        let is_full = egress.len() >= ENTRIES_MAX;
        match egress.iter_mut().find(|known| known.host == asked.host && known.port == asked.port) {
            Some(known) => join(known, asked),
            None if is_full => notes.add(path, Some(number), format!("left out: a skill asks for {ENTRIES_MAX} hosts")),
            None => egress.push(asked),
        }
    }
}

/// Adds the requests to one host to those that are known.
fn join(known: &mut Egress, asked: Egress) {
    for method in asked.methods {
        if !known.methods.contains(&method) {
            known.methods.push(method);
        }
    }
    known.upload_bytes_max = known.upload_bytes_max.or(asked.upload_bytes_max);
    for path in asked.paths {
        if !known.paths.contains(&path) && known.paths.len() < ENTRIES_MAX {
            known.paths.push(path);
        }
    }
}

/// Returns the request for a host; `None` for a placeholder, and for an address of which no part is fixed.
fn asked(address: &str, sends: bool) -> Option<Egress> {
    let end = address.find(['/', '?', '#']).unwrap_or(address.len());
    let (host, rest) = address.split_at(end);
    let (host, port) = match host.split_once(':') {
        Some((host, port)) => (host, Some(port.parse::<u16>().ok().filter(|port| *port != 0)?)),
        None => (host, None),
    };
    let host = host.to_ascii_lowercase();
    let is_part = |part: &str| {
        !part.is_empty() && !part.starts_with('-') && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let is_name =
        host.contains('.') && host.split('.').all(is_part) && host.split('.').any(|part| part.parse::<u16>().is_err());
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_placeholder = PLACEHOLDERS.iter().any(|end| host.ends_with(end)) || last.chars().all(|c| c.is_ascii_digit());
    if !is_name || is_placeholder || host.len() > HOST_BYTES_MAX {
        return None;
    }
    let mut methods = vec!["GET".to_owned()];
    if sends {
        methods.push("POST".to_owned());
    }
    Some(Egress {
        host,
        port: port.filter(|port| *port != 443),
        methods,
        paths: vec![template(rest)?],
        secret: None,
        upload_bytes_max: sends.then_some(UPLOAD_BYTES),
        commands: Some(Commands::Other),
    })
}

/// Returns the template of a path; each part that a program fills in is a slot.
fn template(rest: &str) -> Option<String> {
    let rest = rest.split('#').next().unwrap_or_default();
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let is_fixed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~');
    let mut slots = 0;
    let mut has_fixed = false;
    let mut template = String::new();
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    for part in &parts {
        if part.chars().all(is_fixed) && !matches!(*part, "." | "..") {
            has_fixed = true;
            template.push_str(&format!("/{part}"));
        } else {
            slots += 1;
            template.push_str(&format!("/{{part{slots}}}"));
        }
    }
    if parts.is_empty() {
        template.push('/');
    } else if !has_fixed {
        return None;
    }
    let mut names: Vec<&str> = Vec::new();
    for name in query.split('&').filter_map(|pair| pair.split('=').next()) {
        if !name.is_empty() && name.chars().all(is_fixed) && !names.contains(&name) && slots < SLOTS_MAX {
            slots += 1;
            template.push_str(&format!("{}{name}={{part{slots}?}}", if names.is_empty() { "?" } else { "&" }));
            names.push(name);
        }
    }
    (slots <= SLOTS_MAX && template.len() <= TEMPLATE_BYTES_MAX).then_some(template)
}
