//! A value with its labels.

use super::{Labels, Provenance};

/// A value with its labels. No item, result, note or message is recorded without them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Labelled<T> {
    pub value: T,
    pub labels: Labels,
}

impl<T> Labelled<T> {
    /// Labels a value of this provenance.
    pub const fn new(value: T, provenance: Provenance) -> Self {
        Self { value, labels: Labels::from_provenance(provenance) }
    }

    /// Borrows the value.
    pub const fn as_ref(&self) -> Labelled<&T> {
        Labelled { value: &self.value, labels: self.labels }
    }

    /// Borrows the text of an owned one.
    pub fn as_deref(&self) -> Labelled<&T::Target>
    where
        T: std::ops::Deref,
    {
        Labelled { value: &self.value, labels: self.labels }
    }

    /// Makes another value of it, which has the same labels.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Labelled<U> {
        Labelled { value: make(self.value), labels: self.labels }
    }
}
