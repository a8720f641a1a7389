//! The rows of tables: each type is declared once, with its columns.
//!
//! Has no query. See [`crate::tables`].

/// Declares types of rows. Each has `read`, which takes its columns from a row by their names. A type that is declared `in` a table
/// also has `insert`, which sets these columns.
///
/// The column of a field has the name of the field, or the name after `=`. `as` says how a value is stored if not by its own type:
///
/// | form | stored as |
/// |---|---|
/// | `json` | canonical JSON |
/// | `text` | the text of `Display` and `FromStr` |
/// | `word` | the `name` of a word of a closed list |
/// | `row` | several columns, which the type of the field reads |
/// | a function | the function reads it from the row |
///
/// ```ignore
/// rows! {
///     /// A skill of an agent.
///     #[derive(Debug)]
///     pub struct Skill in agent_skills {
///         /// Its agent.
///         pub agent: AgentId = "agent_id",
///         /// Its name.
///         pub name: String,
///         /// The grants that the agent has because of it.
///         pub brought: Brought as json,
///     }
/// }
///
/// let found: Vec<Skill> = tx.list(SKILLS, [], Skill::read)?;
/// ```
macro_rules! rows {
    (@column $field:ident) => { stringify!($field) };
    (@column $field:ident $column:literal) => { $column };

    (@read $row:ident, $column:expr, $type:ty) => { $row.get($column) };
    (@read $row:ident, $column:expr, $type:ty, json) => { ::ironclaw_state::stored_json($row, $column) };
    (@read $row:ident, $column:expr, $type:ty, text) => { ::ironclaw_state::stored_text($row, $column) };
    (@read $row:ident, $column:expr, $type:ty, word) => { ::ironclaw_state::stored_text($row, $column) };
    (@read $row:ident, $column:expr, $type:ty, row) => { <$type>::read($row) };
    (@read $row:ident, $column:expr, $type:ty, $read:ident) => { $read($row) };

    (@write $value:expr) => { $value };
    (@write $value:expr, json) => { ::ironclaw_contract::canonical::to_string(&$value) };
    (@write $value:expr, text) => { $value.to_string() };
    (@write $value:expr, word) => { $value.name() };

    (@type [$(#[$doc:meta])*] $vis:vis $name:ident {
        $($(#[$of:meta])* $field_vis:vis $field:ident: $type:ty $(= $column:literal)? $(as $form:ident)?),+ $(,)?
    }) => {
        $(#[$doc])*
        $vis struct $name {
            $($(#[$of])* $field_vis $field: $type,)+
        }

        impl $name {
            pub(crate) fn read(row: &::rusqlite::Row<'_>) -> ::rusqlite::Result<Self> {
                Ok(Self {
                    $($field: $crate::rows::rows!(
                        @read row, $crate::rows::rows!(@column $field $($column)?), $type $(, $form)?
                    )?,)+
                })
            }
        }
    };
    (@insert $name:ident [] { $($fields:tt)+ }) => {};
    (@insert $name:ident [$table:ident] {
        $($(#[$of:meta])* $field_vis:vis $field:ident: $type:ty $(= $column:literal)? $(as $form:ident)?),+ $(,)?
    }) => {
        impl $name {
            pub(crate) fn insert(
                &self,
                tx: &mut ::ironclaw_state::WriteTx<'_>,
            ) -> ::core::result::Result<(), ::ironclaw_state::Error> {
                let columns = [$($crate::rows::rows!(@column $field $($column)?)),+];
                let values = ::rusqlite::params![$($crate::rows::rows!(@write self.$field $(, $form)?)),+];
                tx.insert(stringify!($table), &columns, values)
            }
        }
    };

    ($($(#[$doc:meta])* $vis:vis struct $name:ident $(in $table:ident)? { $($fields:tt)+ })+) => {$(
        $crate::rows::rows!(@type [$(#[$doc])*] $vis $name { $($fields)+ });
        $crate::rows::rows!(@insert $name [$($table)?] { $($fields)+ });
    )+};
}

pub(crate) use rows;

#[cfg(test)]
mod tests {
    use crate::record;
    use ironclaw_contract::canonical::Digest;
    use ironclaw_judge::Principal;
    use rusqlite::Row;

    rows! {
        /// A part of `waiting`, in each form.
        #[derive(Debug, Clone, PartialEq, Eq)]
        struct Example in waiting {
            ordinal: u64,
            word: Principal = "id" as word,
            json: Vec<String> = "session_id" as json,
            text: u16 = "agent_id" as text,
            digest: Digest,
        }

        #[derive(Debug, PartialEq, Eq)]
        struct Nested {
            example: Example as row,
            is_first: bool as is_first,
        }
    }

    fn is_first(row: &Row<'_>) -> rusqlite::Result<bool> {
        Ok(row.get::<_, i64>("ordinal")? == 1)
    }

    /// Replaces the table `waiting` of the record by one of the columns of the example.
    const TABLE: &str =
        "CREATE TEMP TABLE waiting (ordinal INTEGER, id TEXT, session_id TEXT, agent_id TEXT, digest TEXT)";

    #[test]
    fn inserted_row_is_read_in_each_form() {
        record::in_a_new_one(|tx, _| {
            tx.execute(TABLE, []).expect("made");
            let json = vec!["a".to_owned(), "\"".to_owned()];
            let row = Example { ordinal: 1, word: Principal::Guest, json, text: 7, digest: Digest::of(b"x") };
            row.insert(tx).expect("inserted");
            let sql = "SELECT ordinal || ' ' || id || ' ' || session_id || ' ' || agent_id FROM waiting";
            let stored: String = tx.get(sql, [], |row| row.get(0)).expect("one");
            assert_eq!(stored, r#"1 guest ["a","\""] 7"#);
            let found = tx.get("SELECT * FROM waiting", [], Nested::read).expect("one");
            assert_eq!(found, Nested { example: row, is_first: true });
        });
    }

    #[test]
    fn value_of_another_form_is_an_error_that_names_the_column() {
        record::in_a_new_one(|tx, _| {
            tx.execute(TABLE, []).expect("made");
            for (column, wrong) in [("id", "'elf'"), ("session_id", "'[1]'"), ("agent_id", "'x'"), ("ordinal", "-1")] {
                tx.execute("DELETE FROM waiting", []).expect("empty");
                let row =
                    Example { ordinal: 1, word: Principal::Guest, json: Vec::new(), text: 7, digest: Digest::of(b"x") };
                row.insert(tx).expect("inserted");
                tx.execute(&format!("UPDATE waiting SET {column} = {wrong}"), []).expect("changed");
                let error = tx.get("SELECT * FROM waiting", [], Example::read).expect_err(column).to_string();
                assert!(error.contains(column) || column == "ordinal", "{column}: {error}");
            }
        });
    }
}
