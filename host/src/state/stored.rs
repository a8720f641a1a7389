//! Reads what stands in a column into a type.
//!
//! Takes nothing for what it is not: what no version of ours wrote is an error with the column's name. Next: `registry`.

/// Reads a stored text into a type; what no version of ours wrote is an error with the column's name.
pub fn stored<T: std::str::FromStr>(row: &rusqlite::Row<'_>, column: &str) -> rusqlite::Result<T> {
    row.get_ref(column)?.as_str()?.parse().map_err(|_| bad(column))
}

/// As [`stored`], for a column that may be null.
pub fn stored_option<T: std::str::FromStr>(row: &rusqlite::Row<'_>, column: &str) -> rusqlite::Result<Option<T>> {
    row.get_ref(column)?.as_str_or_null()?.map(|text| text.parse().map_err(|_| bad(column))).transpose()
}

/// Reads a stored JSON text into a type.
pub fn stored_json<T: serde::de::DeserializeOwned>(row: &rusqlite::Row<'_>, column: &str) -> rusqlite::Result<T> {
    serde_json::from_str(row.get_ref(column)?.as_str()?).map_err(|_| bad(column))
}

/// That a column holds what this version does not write.
pub fn bad(column: &str) -> rusqlite::Error {
    let what = format!("column {column} holds what this version does not write");
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, what.into())
}
