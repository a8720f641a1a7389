//! Deliveries. Tables: `deliveries`.

/// Returns how many deliveries that have not arrived for certain are in each state.
pub fn unsettled_count_by_state(
    tx: &ironclaw_state::ReadTx<'_>,
) -> Result<std::collections::BTreeMap<String, u64>, ironclaw_state::Error> {
    tx.list(
        "SELECT state, count(*) FROM deliveries WHERE state IN ('intent','sending') GROUP BY state UNION ALL \
         SELECT state, count(*) FROM deliveries WHERE state IN ('unknown','dead') GROUP BY state",
        [],
        |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs())),
    )
}
