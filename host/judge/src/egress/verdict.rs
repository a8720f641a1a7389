//! The judgement of one request against the grants of an agent.
//!
//! Pure. A request that no grant admits gets the exact difference, for the refusal and for an approval request; never a grant that is
//! wider than the request. See [`super::grant`] and [`super::request`].

use super::canonical::PLAIN;
use super::grant::{Grant, GrantText, SecretName};
use super::host::{HostName, Loopback};
use super::method::Method;
use super::request::Request;
use super::template::{Slot, Template, Unfilled};
use crate::Class;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// Granted parts that a sentence names.
const SHOWN_MAX: usize = 6;

/// A request that a grant admits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed<'g> {
    grant: &'g Grant,
    template: Option<&'g Template>,
    class: Class,
    slots: Vec<Slot>,
}

impl<'g> Allowed<'g> {
    pub const fn grant(&self) -> &'g Grant {
        self.grant
    }

    /// Returns the template that the URL fills; `None` if the whole URL was typed or endorsed.
    pub const fn template(&self) -> Option<&'g Template> {
        self.template
    }

    /// Returns [`Class::Read`] or [`Class::Send`].
    pub const fn class(&self) -> Class {
        self.class
    }

    /// Returns the control fields. A URL that was typed as a whole is the one field `url`.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }
}

ironclaw_contract::words! {
    /// The kind of a difference between a request and the grants.
    #[derive(PartialOrd, Ord)]
    pub enum Category {
        /// No grant has the host with this port.
        NewHost = "new_host",
        /// The grant does not have the method.
        NewMethod = "new_method",
        /// No template has the path.
        NewPath = "new_path",
        /// A credential would be sent to a host or a path that does not have it yet.
        CredentialReachesFurther = "credential_reaches_further",
        /// The body is too large.
        UploadTooLarge = "upload_too_large",
    }
}

/// One difference between a request and the closest grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "category", rename_all = "snake_case")]
pub enum Difference {
    /// See [`Category::NewHost`].
    NewHost {
        /// The host of the request.
        host: HostName,
        port: u16,
    },
    /// See [`Category::NewMethod`].
    NewMethod {
        /// The method of the request.
        method: Method,
        granted: BTreeSet<Method>,
    },
    /// See [`Category::NewPath`].
    NewPath {
        /// Path and query of the request.
        path: String,
        granted: Vec<Template>,
        /// The reason why the closest one does not match.
        why: String,
    },
    /// See [`Category::CredentialReachesFurther`].
    CredentialReachesFurther {
        /// The secret of the request.
        secret: SecretName,
        /// The method and URL that it would reach.
        reaches: String,
        granted: BTreeSet<HostName>,
    },
    /// See [`Category::UploadTooLarge`].
    UploadTooLarge {
        /// Bytes of the body.
        bytes: u64,
        granted: u64,
    },
}

impl Difference {
    pub const fn category(&self) -> Category {
        match self {
            Self::NewHost { .. } => Category::NewHost,
            Self::NewMethod { .. } => Category::NewMethod,
            Self::NewPath { .. } => Category::NewPath,
            Self::CredentialReachesFurther { .. } => Category::CredentialReachesFurther,
            Self::UploadTooLarge { .. } => Category::UploadTooLarge,
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NewHost { host, port } => write!(f, "no grant has the host {host} with port {port}"),
            Self::NewMethod { method, granted } => {
                write!(f, "the grant does not have {method}, only {}", joined(granted))
            }
            Self::NewPath { path, granted, .. } if granted.is_empty() => {
                write!(f, "the grant has no path, and no person typed this URL with the path {path}")
            }
            Self::NewPath { path, granted, why } => {
                write!(f, "the grant does not have the path {path}, only {}: {why}", joined(granted))
            }
            Self::CredentialReachesFurther { secret, reaches, granted } if granted.is_empty() => {
                write!(f, "no grant sends {secret}, and it would reach {reaches}")
            }
            Self::CredentialReachesFurther { secret, reaches, .. } => {
                write!(f, "{secret} would also reach {reaches}")
            }
            Self::UploadTooLarge { bytes, granted } => {
                write!(f, "the body has {bytes} bytes, and the grant admits {granted}")
            }
        }
    }
}

/// Joins granted parts for a sentence, and counts those that are too many to read.
fn joined<T: ToString>(parts: impl IntoIterator<Item = T>) -> String {
    let mut words: Vec<_> = parts.into_iter().map(|part| part.to_string()).collect();
    let more = words.len().saturating_sub(SHOWN_MAX);
    words.truncate(SHOWN_MAX);
    let shown = words.join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} others") }
}

/// A request that no grant admits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    differences: Vec<Difference>,
    proposal: Option<Box<GrantText>>,
}

impl Missing {
    /// Returns the differences to the closest grant, each category at most once.
    pub fn differences(&self) -> &[Difference] {
        &self.differences
    }

    pub fn categories(&self) -> Vec<Category> {
        self.differences.iter().map(Difference::category).collect()
    }

    /// Returns the smallest grant that admits this request. `None` if no template can be written for its path.
    pub fn proposal(&self) -> Option<&GrantText> {
        self.proposal.as_deref()
    }

    /// Returns the refusal in one line.
    pub fn sentence(&self) -> String {
        let words: Vec<_> = self.differences.iter().map(ToString::to_string).collect();
        words.join("; ")
    }

    /// Returns the next step: the command of an operator that grants this request alone.
    pub fn next_step(&self, agent: &str) -> String {
        match self.command(agent) {
            Some(command) => format!("an operator can grant it: {command}"),
            None => "no grant can have this path; request a path without dots, encoded slashes, wildcards and repeated parameters".to_owned(),
        }
    }

    /// Returns the command that grants this request alone; `None` if no grant can have it.
    pub fn command(&self, agent: &str) -> Option<String> {
        let grant = self.proposal()?;
        let mut command = format!("ironctl egress grant {agent} {}", grant.host);
        let port = grant.port.map(|port| ("--port", port.to_string()));
        let methods = grant.methods.iter().map(|method| ("--method", method.clone()));
        let paths = grant.paths.iter().map(|path| ("--path", format!("'{}'", path.replace('\'', r"'\''"))));
        let secret = grant.secret.iter().map(|secret| ("--secret", secret.clone()));
        let upload = grant.upload_bytes_max.map(|bytes| ("--upload-bytes-max", bytes.to_string()));
        for (option, value) in port.into_iter().chain(methods).chain(paths).chain(secret).chain(upload) {
            command.push_str(&format!(" {option} {value}"));
        }
        Some(command)
    }
}

/// Judges a request. `is_typed` says whether a person typed or endorsed a value: a whole URL in canonical form, the value of a slot
/// without percent-encoding, or the value of a header.
///
/// # Errors
/// The difference to the closest grant.
pub fn judge<'g>(
    grants: &'g [Grant],
    request: &Request,
    is_typed: &dyn Fn(&str) -> bool,
) -> Result<Allowed<'g>, Missing> {
    let (mut best, mut closest): (Option<Allowed<'g>>, Option<Vec<Difference>>) = (None, None);
    for grant in grants.iter().filter(|grant| is_host_of(grant, request)) {
        match admit(grant, grants, request, is_typed) {
            Ok(allowed) if best.as_ref().is_none_or(|best| allowed.class < best.class) => best = Some(allowed),
            Ok(_) => {}
            Err(found) if closest.as_ref().is_none_or(|closest| found.len() < closest.len()) => closest = Some(found),
            Err(_) => {}
        }
    }
    if let Some(allowed) = best {
        return Ok(allowed);
    }
    let differences = closest.unwrap_or_else(|| {
        let (host, port) = (request.url().host().clone(), request.url().port());
        let credential = further(grants, request);
        std::iter::once(Difference::NewHost { host, port }).chain(credential).collect()
    });
    Err(Missing { differences, proposal: proposal(request).map(Box::new) })
}

fn is_host_of(grant: &Grant, request: &Request) -> bool {
    !grant.is_tunnel() && grant.is_of(request.url())
}

fn admit<'g>(
    grant: &'g Grant,
    grants: &[Grant],
    request: &Request,
    is_typed: &dyn Fn(&str) -> bool,
) -> Result<Allowed<'g>, Vec<Difference>> {
    let mut differences = Vec::new();
    let method = request.method();
    if !grant.methods().contains(&method) {
        differences.push(Difference::NewMethod { method, granted: grant.methods().clone() });
    }
    let place = place(grant, request, is_typed);
    if let Err(why) = &place {
        let (path, granted) = (request.url().path_and_query().to_owned(), grant.paths().to_vec());
        differences.push(Difference::NewPath { path, granted, why: why.to_string() });
    }
    // With the secret of this grant, a new method or path also gets the secret.
    if !differences.is_empty() || request.secret().is_some_and(|secret| grant.secret() != Some(secret)) {
        differences.extend(further(grants, request));
    }
    let (bytes, granted) = (request.body_bytes(), grant.upload_bytes_max());
    if bytes > granted {
        differences.push(Difference::UploadTooLarge { bytes, granted });
    }
    match place {
        Ok((template, slots)) if differences.is_empty() => {
            let class = class(request, template, &slots, is_typed);
            Ok(Allowed { grant, template, class, slots })
        }
        Ok(_) | Err(_) => Err(differences),
    }
}

type Place<'g> = (Option<&'g Template>, Vec<Slot>);

/// Returns the template that the URL fills, one whose values are all typed if there is one.
fn place<'g>(grant: &'g Grant, request: &Request, is_typed: &dyn Fn(&str) -> bool) -> Result<Place<'g>, Unfilled> {
    let url = request.url();
    if grant.paths().is_empty() {
        let is_read = request.method().only_reads() && request.secret().is_none();
        let whole = Slot { name: "url".to_owned(), value: url.to_string(), range: 0..url.as_str().len() };
        return if is_read && is_typed(url.as_str()) { Ok((None, vec![whole])) } else { Err(Unfilled::Path) };
    }
    let (mut found, mut closest) = (None, Unfilled::Path);
    for template in grant.paths() {
        match template.fill(url) {
            Ok(slots) if slots.iter().all(|slot| is_typed(&slot.value)) => return Ok((Some(template), slots)),
            Ok(slots) => found = found.or(Some((Some(template), slots))),
            Err(why) => closest = closest.max(why),
        }
    }
    found.ok_or(closest)
}

fn class(request: &Request, template: Option<&Template>, slots: &[Slot], is_typed: &dyn Fn(&str) -> bool) -> Class {
    let is_typed_url = request.secret().is_none() && is_typed(request.url().as_str());
    let fills = template.is_some() && slots.iter().all(|slot| is_typed(&slot.value));
    let is_read = request.method().only_reads() && (is_typed_url || fills) && request.has_plain_headers(is_typed);
    if is_read { Class::Read } else { Class::Send }
}

/// Returns the further reach of the secret of a request.
fn further(grants: &[Grant], request: &Request) -> Option<Difference> {
    let secret = request.secret()?;
    let has_it = |grant: &&Grant| grant.secret() == Some(secret);
    Some(Difference::CredentialReachesFurther {
        secret: secret.clone(),
        reaches: format!("{} {}", request.method(), request.url()),
        granted: grants.iter().filter(has_it).map(|grant| grant.host().clone()).collect(),
    })
}

/// Returns the smallest grant that admits a request.
fn proposal(request: &Request) -> Option<GrantText> {
    let url = request.url();
    let has_body = !request.method().only_reads();
    let text = GrantText {
        host: if url.is_plain() { format!("{PLAIN}{}", url.host()) } else { url.host().to_string() },
        port: Some(url.port()),
        methods: vec![request.method().to_string()],
        paths: vec![Template::exact(url)?.to_string()],
        secret: request.secret().map(|secret| secret.as_str().to_owned()),
        upload_bytes_max: has_body.then_some(request.body_bytes()),
        commands: None,
    };
    let loopback = if url.host().is_loopback() { Loopback::DangerousAllowed } else { Loopback::Refused };
    Grant::check(&text, loopback).ok().map(|grant| grant.text())
}
