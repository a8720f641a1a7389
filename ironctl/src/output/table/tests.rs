//! Tables of the layout.

use super::*;

const ID: &str = "ses_01j9zq4w0v2m6n8p0r2t4v6x8z";
const TIME: &str = "2026-11-28 07:23";

fn laid<'a, const N: usize>(columns: impl Into<Columns<'a, N>>, rows: &[[&str; N]], width: usize) -> Laid {
    let rows = rows.iter().map(|row| row.map(str::to_owned)).collect();
    lay_out(columns.into(), rows, Some(width))
}

fn widest(text: &str) -> usize {
    text.lines().map(UnicodeWidthStr::width).max().unwrap_or(0)
}

#[test]
fn column_without_content_is_left_out_on_a_terminal_alone() {
    let rows = [["a", "", "b"], ["c", "", ""]];
    let shown = laid(["ONE", "TWO", "THREE"], &rows, 80);
    assert!(!shown.text.contains("TWO") && shown.text.contains("ONE") && shown.text.contains("THREE"), "{shown:?}");
    assert!(shown.left_out.is_empty(), "there is nothing to leave out");
    let rows = rows.map(|row| row.map(str::to_owned)).to_vec();
    assert!(lay_out(Columns::new(["ONE", "TWO", "THREE"]), rows, None).text.contains("TWO"));
    assert!(laid(["ONE", "TWO"], &[], 80).text.contains("TWO"), "a table without rows has each header");
}

#[test]
fn narrower_terminals_lose_frame_then_columns_then_the_row() {
    let columns = Columns::new(["ID", "NAME", "AT"]).with_least(&["AT"]);
    let rows = [[ID, "name", TIME]];
    let text = |width| laid(columns, &rows, width);
    assert_eq!(
        text(60).text,
        "┌────────────────────────────────┬──────┬──────────────────┐\n\
         │ ID                             ┆ NAME ┆ AT               │\n\
         ╞════════════════════════════════╪══════╪══════════════════╡\n\
         │ ses_01j9zq4w0v2m6n8p0r2t4v6x8z ┆ name ┆ 2026-11-28 07:23 │\n\
         └────────────────────────────────┴──────┴──────────────────┘"
    );
    let plain = "ID                              NAME  AT\nses_01j9zq4w0v2m6n8p0r2t4v6x8z  name  2026-11-28 07:23";
    assert_eq!(text(54).text, plain);
    assert_eq!(
        (text(53).text.lines().count(), text(53).left_out),
        (5, vec!["AT".to_owned()]),
        "framed again, without the time"
    );
    let below = "ID\nses_01j9zq4w0v2m6n8p0r2t4v6x8z\n    name: name";
    assert_eq!(text(32).text, below);
}

#[test]
fn long_text_is_wrapped_or_below_by_the_fewer_lines() {
    let short = laid(["A", "TEXT"], &[["a", "one two three four five six seven eight"]], 40);
    assert!(short.text.contains("┆ seven eight "), "{short:?}");
    let tools = "read_file write_file list_dir search_files remember recall run_command http_fetch send_file ask";
    let rows = [["assistant", "local", tools, "12", TIME]; 5];
    let laid = laid(["AGENT", "MODEL", "TOOLS", "SESSIONS", "ADDED"], &rows, 80);
    assert!(laid.text.contains("\n    tools: read_file write_file"), "{}", laid.text);
    assert_eq!(laid.text.lines().count(), 1 + 5 * 3, "{}", laid.text);
}

#[test]
fn no_width_breaks_an_id_or_exceeds_the_terminal() {
    let url = "https://hooks.example/services/T0000000/B0000000/aaaaaaaaaaaaaaaaaaaaaaaa?wait=true";
    let rows = [
        [ID, "owner", "20261128-072317-900", TIME, url, "Look what changed in notes and post it to my webhook"],
        [ID, "ana-maria", "", TIME, "", "Привет, что нового?"],
    ];
    for width in 40..140 {
        let laid = laid(["ID", "PERSON", "THREAD", "AT", "URL", "TITLE"], &rows, width);
        assert!(widest(&laid.text) <= width, "{width}:\n{}", laid.text);
        assert_eq!(laid.text.matches(ID).count(), 2, "{width}:\n{}", laid.text);
        assert_eq!(laid.text.matches(TIME).count(), 2, "{width}:\n{}", laid.text);
        assert!(laid.text.contains("20261128-072317-900"), "{width}:\n{}", laid.text);
    }
}

#[test]
fn plain_table_has_every_column_on_one_line() {
    let rows = vec![[ID.to_owned(), "x ".repeat(200), "b".to_owned()]];
    let laid = lay_out(Columns::new(["ID", "TEXT", "B"]).with_least(&["B"]), rows, None);
    assert_eq!(laid.text.lines().count(), 2);
    assert!(laid.text.ends_with('b'));
}
