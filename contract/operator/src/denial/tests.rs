//! Tests of the list of denial codes.

use super::*;
use std::collections::BTreeSet;

#[test]
fn names_are_unique_and_are_read_back() {
    let names: BTreeSet<&str> = DenialCode::ALL.iter().map(|code| code.name()).collect();
    assert_eq!(names.len(), DenialCode::ALL.len());
    for code in DenialCode::ALL {
        assert_eq!(code.name().parse(), Ok(*code));
        assert_eq!(serde_json::to_value(code).expect("JSON"), code.name());
    }
    assert_eq!("no_such_code".parse::<DenialCode>(), Err(UnknownCode));
}

#[test]
fn only_the_host_fails_with_a_status_of_500_or_more() {
    for code in DenialCode::ALL {
        assert_eq!(code.status() >= 500, code.fault() == Fault::Host, "{code}");
    }
}
