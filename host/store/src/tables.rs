//! The SQL of the host. Exactly one file with its folder writes each table, and others may read it. Only `meta` has two writers: [`facts`], and
//! the crate [`ironclaw_state`] for its own marks.
//!
//! A function runs one statement, or a few related ones, in the transaction of its caller. It applies no rule and appends no ledger
//! entry, because the modules above do that. Each row has a type in the same file; `rows!` of [`crate::rows`] declares the types that
//! have the columns of a table.

pub mod agent_messages;
pub mod agents;
pub mod approvals;
pub mod channels;
pub mod context_sizes;
pub mod deliveries;
pub mod destinations;
pub mod endpoint_words;
pub mod facts;
pub mod groups;
pub mod items;
pub mod looked_up_names;
pub mod mcp;
pub mod memories;
pub mod messages;
pub mod models;
pub mod notifications;
pub mod people;
pub mod schedules;
pub mod sent_files;
pub mod server_values;
pub mod sessions;
pub mod skills;
pub mod turns;
pub mod waiting;

#[cfg(test)]
mod tests {
    use rusqlite::types::Null;

    /// Returns the steps of the plan of a statement that read one of these tables, in a new record.
    pub(super) fn steps_on(tables: &[&str], sql: &str) -> Vec<String> {
        let db = rusqlite::Connection::open_in_memory().expect("made");
        for version in ironclaw_state::migrations::VERSIONS {
            db.execute_batch(version).expect("a version of the schema");
        }
        let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("it is SQL");
        let nothing = rusqlite::params_from_iter(vec![Null; statement.parameter_count()]);
        let plan = statement.query_map(nothing, |row| row.get::<_, String>("detail")).expect("a plan");
        let plan: Vec<String> = plan.collect::<Result<_, _>>().expect("its steps");
        plan.into_iter().filter(|step| tables.iter().any(|table| step.contains(&format!(" {table}")))).collect()
    }
}
