//! The ranges of the local network that an operator allows, and the addresses that people read on a page.
//!
//! Never admits loopback, a link-local address, a metadata service, an address of this machine, or a form that hides another address,
//! whatever a range says. See [`super::Resolver`].

use super::{AddressRefused, Special, special};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

/// The blocks whose addresses a range can admit: RFC 1918, RFC 6598 and RFC 4193.
const BLOCKS: [Range; 5] = [
    Range { first: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), bits: 8 },
    Range { first: IpAddr::V4(Ipv4Addr::new(172, 16, 0, 0)), bits: 12 },
    Range { first: IpAddr::V4(Ipv4Addr::new(192, 168, 0, 0)), bits: 16 },
    Range { first: IpAddr::V4(Ipv4Addr::new(100, 64, 0, 0)), bits: 10 },
    Range { first: IpAddr::V6(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0)), bits: 7 },
];

/// A range of addresses, such as `10.0.0.0/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    first: IpAddr,
    bits: u8,
}

/// A text that is no range of a local network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    #[error("{0:?} is no range: write an address and a number of bits, such as 10.0.0.0/8")]
    NoRange(String),
    /// An address with bits behind those of the range.
    #[error("{0:?} begins within its range: write {1}")]
    Within(String, Range),
    #[error(
        "{0} has no address of a local network: write a range in 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10 or fc00::/7"
    )]
    Elsewhere(Range),
    #[error("{0} has only the address of a cloud's metadata service, which is never asked")]
    Metadata(Range),
}

impl Range {
    /// Returns whether an address is in the range. A mapped form is in no range of IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => shifted_v4(first, self.bits) == shifted_v4(address, self.bits),
            (IpAddr::V6(first), IpAddr::V6(address)) => shifted_v6(first, self.bits) == shifted_v6(address, self.bits),
            _ => false,
        }
    }

    fn bits_max(self) -> u8 {
        if self.first.is_ipv4() { 32 } else { 128 }
    }

    fn begin(self) -> Self {
        let rest = self.bits_max() - self.bits;
        let first = match self.first {
            IpAddr::V4(_) if rest == 32 => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V4(first) => Ipv4Addr::from(u32::from(first) >> rest << rest).into(),
            IpAddr::V6(_) if rest == 128 => Ipv6Addr::UNSPECIFIED.into(),
            IpAddr::V6(first) => Ipv6Addr::from(u128::from(first) >> rest << rest).into(),
        };
        Self { first, bits: self.bits }
    }

    fn check(self) -> Result<Self, RangeError> {
        let overlaps = |block: &Self| block.contains(self.first) || self.contains(block.first);
        match BLOCKS.iter().any(overlaps) {
            false => Err(RangeError::Elsewhere(self)),
            true if self.bits == self.bits_max() && Special::classify(self.first) == Some(Special::Metadata) => {
                Err(RangeError::Metadata(self))
            }
            true => Ok(self),
        }
    }
}

fn shifted_v4(address: Ipv4Addr, bits: u8) -> u32 {
    u32::from(address).checked_shr(32 - u32::from(bits)).unwrap_or(0)
}

fn shifted_v6(address: Ipv6Addr, bits: u8) -> u128 {
    u128::from(address).checked_shr(128 - u32::from(bits)).unwrap_or(0)
}

impl FromStr for Range {
    type Err = RangeError;

    fn from_str(text: &str) -> Result<Self, RangeError> {
        let no_range = || RangeError::NoRange(text.to_owned());
        let (first, bits) = text.split_once('/').ok_or_else(no_range)?;
        let first: IpAddr = first.parse().map_err(|_| no_range())?;
        let is_number = bits.bytes().all(|byte| byte.is_ascii_digit());
        let range = Self { first, bits: bits.parse().ok().filter(|_| is_number).ok_or_else(no_range)? };
        if range.bits > range.bits_max() {
            return Err(no_range());
        }
        match range.begin() {
            begin if begin == range => range.check(),
            begin => Err(RangeError::Within(text.to_owned(), begin)),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

impl<'de> Deserialize<'de> for Range {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for Range {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Returns whether ranges admit an address: a private or shared one in a range, and not of this machine.
pub fn admits(ranges: &[Range], address: IpAddr) -> bool {
    let is_near = matches!(Special::classify(address), Some(Special::Private | Special::Shared));
    is_near && ranges.iter().any(|range| range.contains(address)) && !special::is_own(address)
}

/// The ranges of the settings at the moment of a connection.
pub type RangesNow = Arc<dyn Fn() -> Vec<Range> + Send + Sync>;

/// The addresses of a host that people read on a page. A connection goes to these alone, while the settings admit them.
#[derive(Clone)]
pub struct Shown {
    pub addresses: Vec<IpAddr>,
    pub ranges: RangesNow,
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shown").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl Shown {
    /// Returns the addresses of a name that people read.
    ///
    /// # Errors
    /// Refuses a name with another address of the ranges, one with none of the shown addresses, and addresses that the settings no longer
    /// admit.
    pub(super) fn choose(&self, found: &[SocketAddr]) -> Result<Vec<SocketAddr>, AddressRefused> {
        let ranges = (self.ranges)();
        let (shown, others): (Vec<&SocketAddr>, Vec<&SocketAddr>) =
            found.iter().partition(|found| self.addresses.contains(&found.ip()));
        let differs = |found: &SocketAddr| AddressRefused::Differs { found: found.ip(), shown: self.addresses[0] };
        if let Some(other) = others.iter().find(|found| admits(&ranges, found.ip())) {
            return Err(differs(other));
        }
        let admitted: Vec<_> = shown.iter().copied().filter(|found| admits(&ranges, found.ip())).copied().collect();
        match (admitted.is_empty(), shown.first(), others.first()) {
            (false, _, _) => Ok(admitted),
            (true, Some(shown), _) => Err(AddressRefused::OutsideOfLan(shown.ip())),
            (true, None, Some(other)) => Err(differs(other)),
            (true, None, None) => Err(AddressRefused::OutsideOfLan(self.addresses[0])),
        }
    }

    /// Refuses an address in a URL that people did not read.
    ///
    /// # Errors
    /// As for a name with this address.
    pub fn check(&self, address: IpAddr) -> Result<(), AddressRefused> {
        self.choose(&[SocketAddr::new(address, 0)]).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(texts: &[&str]) -> Vec<Range> {
        texts.iter().map(|text| text.parse().expect(text)).collect()
    }

    #[test]
    fn range_without_a_local_address_is_refused() {
        for bad in [
            "",
            "10.0.0.0",
            "10.0.0.0/33",
            "10.0.0.0/-1",
            "10.0.0.0/+8",
            "10.0.0.0/",
            "10/8",
            "fd00::/129",
            "nas.example/8",
            "10.0.0.1/8",
            "127.0.0.0/8",
            "127.0.0.1/32",
            "169.254.0.0/16",
            "169.254.169.254/32",
            "8.8.8.0/24",
            "0.0.0.0/32",
            "::1/128",
            "fe80::/10",
            "::ffff:10.0.0.0/104",
            "64:ff9b::a00:0/104",
            "2001:db8::/32",
            "224.0.0.0/4",
            "100.100.100.200/32",
            "fd00:ec2::254/128",
            "fd20:ce::254/128",
        ] {
            assert!(bad.parse::<Range>().is_err(), "{bad}");
        }
        for good in [
            "10.0.0.0/8",
            "10.1.2.3/32",
            "192.168.1.0/24",
            "100.64.0.0/10",
            "fd00::/8",
            "fc00::/7",
            "0.0.0.0/0",
            "::/0",
        ] {
            assert_eq!(good.parse::<Range>().map(|range| range.to_string()), Ok(good.to_owned()));
        }
    }

    #[test]
    fn widest_range_admits_local_addresses_alone() {
        let all = ranges(&["0.0.0.0/0", "::/0"]);
        for never in [
            "127.0.0.1",
            "::1",
            "169.254.169.254",
            "fe80::1",
            "100.100.100.200",
            "168.63.129.16",
            "fd00:ec2::254",
            "::ffff:10.0.0.1",
            "::10.0.0.1",
            "64:ff9b::a00:1",
            "2002:a00:1::1",
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
            "8.8.8.8",
            "2606:4700::1111",
            "fec0::1",
        ] {
            assert!(!admits(&all, never.parse().expect(never)), "{never}");
        }
        for near in ["10.0.0.1", "172.31.0.1", "192.168.0.1", "100.64.0.1", "fd12::1"] {
            assert!(admits(&all, near.parse().expect(near)), "{near}");
            assert!(!admits(&[], near.parse().expect(near)), "{near}");
        }
        let ten = ranges(&["10.0.0.0/8"]);
        assert!(admits(&ten, "10.255.0.1".parse().expect("an address")));
        assert!(!admits(&ten, "11.0.0.1".parse().expect("an address")));
        assert!(!admits(&ten, "fd00::1".parse().expect("an address")));
    }

    #[test]
    fn connection_goes_to_shown_addresses_alone() {
        let shown = |lan: &[&str]| {
            let lan = ranges(lan);
            Shown { addresses: vec!["10.0.0.7".parse().expect("an address")], ranges: Arc::new(move || lan.clone()) }
        };
        let choose = |lan: &[&str], found: &[&str]| {
            let found: Vec<_> = found.iter().map(|text| SocketAddr::new(text.parse().expect(text), 0)).collect();
            let chosen = shown(lan).choose(&found);
            chosen.map(|all| all.iter().map(|one| one.ip().to_string()).collect::<Vec<_>>())
        };
        let ip = |text: &str| text.parse().expect("an address");
        let differs = |found: &str| Err(AddressRefused::Differs { found: ip(found), shown: ip("10.0.0.7") });
        let wide = &["10.0.0.0/8", "192.168.0.0/16"][..];
        for (lan, found, expected) in [
            (wide, &["10.0.0.7"][..], Ok(vec!["10.0.0.7".to_owned()])),
            (wide, &["fe80::1", "10.0.0.7", "8.8.8.8"], Ok(vec!["10.0.0.7".to_owned()])),
            (wide, &["10.0.0.8"], differs("10.0.0.8")),
            (wide, &["10.0.0.7", "10.0.0.8"], differs("10.0.0.8")),
            (wide, &["192.168.0.1", "10.0.0.7"], differs("192.168.0.1")),
            (wide, &["8.8.8.8"], differs("8.8.8.8")),
            (wide, &["127.0.0.1"], differs("127.0.0.1")),
            (wide, &["169.254.169.254"], differs("169.254.169.254")),
            (wide, &["::ffff:10.0.0.7"], differs("::ffff:10.0.0.7")),
            (wide, &[], Err(AddressRefused::OutsideOfLan(ip("10.0.0.7")))),
            (&["192.168.0.0/16"], &["10.0.0.7"], Err(AddressRefused::OutsideOfLan(ip("10.0.0.7")))),
            (&[], &["10.0.0.7"], Err(AddressRefused::OutsideOfLan(ip("10.0.0.7")))),
        ] {
            assert_eq!(choose(lan, found), expected, "{lan:?} {found:?}");
        }
    }
}
