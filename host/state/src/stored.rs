//! The conversions of columns with an enum or JSON.
//!
//! Any other text in a column is an error that names the column. See `registry` of the host.

/// Reads a stored JSON text into a type.
pub fn stored_json<T, C>(row: &rusqlite::Row<'_>, column: C) -> rusqlite::Result<T>
where
    T: serde::de::DeserializeOwned,
    C: rusqlite::RowIndex + std::fmt::Display + Copy,
{
    serde_json::from_str(row.get_ref(column)?.as_str()?).map_err(|_| bad(column))
}

/// Reads a stored text into a type of another crate.
pub fn stored_text<T: std::str::FromStr>(row: &rusqlite::Row<'_>, column: &str) -> rusqlite::Result<T> {
    row.get_ref(column)?.as_str()?.parse().map_err(|_| bad(column))
}

/// Makes the error for a column with a value that this version does not write.
pub fn bad(column: impl std::fmt::Display) -> rusqlite::Error {
    let what = format!("column {column} has a value that this version does not write");
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, what.into())
}
