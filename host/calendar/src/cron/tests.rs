use super::*;

fn code(text: &str) -> &'static str {
    text.parse::<Cron>().expect_err(text).code()
}

#[test]
fn unreadable_expression_is_refused_with_its_code() {
    for (expected, texts) in [
        ("cron_field_count", &["banana", "", "@daily", "0 8 * *", "0 0 8 * * *"][..]),
        ("cron_question_mark", &["0 8 ? * mon", "0 8 * * ?"]),
        ("cron_field", &["banana * * * *", "60 8 * * *", "*/0 * * * *", "*/60 * * * *", "5-1 * * * *"]),
        ("cron_field", &["1/2 * * * *", "1-2-3 * * * *", "1, * * * *", ", * * * *", "-1 * * * *", "+1 * * * *"]),
        ("cron_field", &["** * * * *", "*/ * * * *", "*/1/2 * * * *", "99999999999 * * * *"]),
        ("cron_field", &["0 24 * * *", "0 jan * * *"]),
        ("cron_field", &["0 8 0 * *", "0 8 32 * *", "0 8 L * *", "0 8 15W * *"]),
        ("cron_field", &["0 8 * 0 *", "0 8 * 13 *"]),
        ("cron_field", &["0 8 * * 8", "0 8 * * 5#3", "0 8 * * monday"]),
        ("cron_never", &["0 8 31 2 *", "0 8 30,31 feb *", "0 8 31 4,6,9,11 *"]),
    ] {
        for text in texts {
            assert_eq!(code(text), expected, "{text}");
        }
    }
    assert_eq!(code(&"0,".repeat(1000)), "cron_too_long");
}

#[test]
fn expression_is_written_in_lower_case_with_single_blanks() {
    for (text, written) in [
        ("0 8 * * *", "0 8 * * *"),
        (" 0  8\t* JAN-Mar Mon,FRI ", "0 8 * jan-mar mon,fri"),
        ("*/15 9-17/2 1-7 * 7", "*/15 9-17/2 1-7 * 7"),
        ("0 0 29 2 *", "0 0 29 2 *"),
    ] {
        let cron: Cron = text.parse().expect(text);
        assert_eq!(cron.to_string(), written);
        assert_eq!(written.parse(), Ok(cron));
    }
}

/// Returns the first wall times from 2026-01-01, as texts without seconds.
fn times(text: &str, count: usize) -> Vec<String> {
    let cron: Cron = text.parse().expect(text);
    let wall = |date: Date| jiff::tz::Offset::UTC.to_timestamp(date.at(0, 0, 0, 0)).expect("in range").as_millisecond();
    let found =
        std::iter::successors(cron.first_from(wall(date(2026, 1, 1))), |at| cron.first_from(at + 1)).take(count);
    found
        .map(|at| jiff::Timestamp::from_millisecond(at).expect("in range").strftime("%Y-%m-%d %H:%M").to_string())
        .collect()
}

#[test]
fn fields_select_their_times() {
    for (text, expected) in [
        ("0 8 * * *", ["2026-01-01 08:00", "2026-01-02 08:00", "2026-01-03 08:00"]),
        ("*/25 * * * *", ["2026-01-01 00:00", "2026-01-01 00:25", "2026-01-01 00:50"]),
        ("5,10-12/2 23 * * *", ["2026-01-01 23:05", "2026-01-01 23:10", "2026-01-01 23:12"]),
        ("0 8 * * 7", ["2026-01-04 08:00", "2026-01-11 08:00", "2026-01-18 08:00"]),
        ("0 8 * * 0", ["2026-01-04 08:00", "2026-01-11 08:00", "2026-01-18 08:00"]),
        ("0 8 * * sat-sun", ["2026-01-03 08:00", "2026-01-04 08:00", "2026-01-10 08:00"]),
        ("0 8 * * 5-7", ["2026-01-02 08:00", "2026-01-03 08:00", "2026-01-04 08:00"]),
        ("0 8 31 * *", ["2026-01-31 08:00", "2026-03-31 08:00", "2026-05-31 08:00"]),
        ("0 0 29 2 *", ["2028-02-29 00:00", "2032-02-29 00:00", "2036-02-29 00:00"]),
        ("59 23 31 12 *", ["2026-12-31 23:59", "2027-12-31 23:59", "2028-12-31 23:59"]),
        ("0 0 1 jan *", ["2026-01-01 00:00", "2027-01-01 00:00", "2028-01-01 00:00"]),
        ("0 0 13 * fri", ["2026-01-02 00:00", "2026-01-09 00:00", "2026-01-13 00:00"]),
        ("0 0 */31 * mon", ["2026-06-01 00:00", "2027-02-01 00:00", "2027-03-01 00:00"]),
    ] {
        assert_eq!(times(text, 3), expected, "{text}");
    }
}

#[test]
fn leap_day_on_one_weekday_is_found_over_a_century() {
    // `*/7` is Sunday alone and restricts nothing by cron(5), so both fields must match.
    let cron: Cron = "0 0 29 2 */7".parse().expect("an expression");
    let from = jiff::Timestamp::from_second(4_000_000_000).expect("in 2096").as_millisecond();
    let found = jiff::Timestamp::from_millisecond(cron.first_from(from).expect("a day")).expect("in range");
    assert_eq!(found.to_string(), "2128-02-29T00:00:00Z");
}
