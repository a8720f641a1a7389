//! The replacement of addresses in an answer: a package index names files at granted hosts, which a command reaches at the gateway only.
//!
//! Keeps less than the longest address between two pieces. See [`super::gateway`].

use super::address::{at_gateway, name, origin};
use super::hosts::GrantedHost;

/// The first byte of every address.
const FIRST: u8 = b'h';

/// Replaces the addresses of granted hosts in a body that arrives in pieces.
pub(super) struct Rewriter {
    /// Each address, and the text in its place.
    addresses: Vec<(Vec<u8>, Vec<u8>)>,
    longest: usize,
    held: Vec<u8>,
}

impl Rewriter {
    /// Makes one for the addresses of these hosts in an answer of `from`, and for links without a host.
    pub(super) fn new(hosts: &[GrantedHost], from: &GrantedHost) -> Self {
        let absolute = hosts.iter().map(|host| (origin(&host.grant), at_gateway(&host.grant)));
        let relative = ("href=\"/".to_owned(), format!("href=\"/{}/", name(&from.grant)));
        let all = absolute.chain(std::iter::once(relative));
        let addresses: Vec<_> = all.map(|(address, other)| (address.into_bytes(), other.into_bytes())).collect();
        let longest = addresses.iter().map(|(address, _)| address.len()).max().unwrap_or_default();
        Self { addresses, longest, held: Vec::new() }
    }

    /// Adds a piece. Returns the bytes in which no address can still begin.
    pub(super) fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        let sure = (self.held.len() + 1).saturating_sub(self.longest);
        self.replace(sure)
    }

    pub(super) fn end(mut self) -> Vec<u8> {
        self.replace(self.held.len())
    }

    /// Replaces the addresses that begin in the first `sure` bytes, and releases these.
    fn replace(&mut self, sure: usize) -> Vec<u8> {
        let (mut out, mut at) = (Vec::with_capacity(sure), 0);
        while at < sure {
            let rest = &self.held[at..];
            if rest[0] == FIRST
                && let Some((address, other)) = self.addresses.iter().find(|(address, _)| rest.starts_with(address))
            {
                out.extend_from_slice(other);
                at += address.len();
                continue;
            }
            out.push(rest[0]);
            at += 1;
        }
        self.held.drain(..at);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::route::tests::host;
    use super::*;
    use ironclaw_judge::egress::Commands;

    const PAGE: &str = "<a href=\"/q/y.whl\"> <a href=\"https://files.example.org/p/x.whl#sha256=1\">h</a> https://other.example.org/ https://files.example.org";

    #[test]
    fn address_of_a_granted_host_is_replaced_at_every_border() {
        let expected = PAGE
            .replace("https://files.example.org/", "http://127.0.0.1:8129/files.example.org/")
            .replace("\"/q/", "\"/files.example.org/q/");
        let from = || host("files.example.org", Commands::Pip, &["/p/{file}"]);
        for size in 1..PAGE.len() {
            let mut rewriter = Rewriter::new(&[from()], &from());
            let mut out: Vec<u8> = PAGE.as_bytes().chunks(size).flat_map(|piece| rewriter.push(piece)).collect();
            out.extend(rewriter.end());
            assert_eq!(String::from_utf8(out).expect("text"), expected, "pieces of {size} bytes");
        }
    }
}
