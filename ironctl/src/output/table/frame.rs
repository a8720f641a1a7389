//! The lines of a table with fixed widths, with a frame or with blanks between the columns.
//!
//! Never measures or wraps a text. See [`super::words`].

use super::GAP;
use unicode_width::UnicodeWidthStr;

/// Returns the columns of a terminal that the frame around so many columns takes.
pub const fn columns(count: usize) -> usize {
    3 * count + 1
}

/// The lines of a table so far.
pub struct Lines<'a> {
    widths: &'a [usize],
    is_framed: bool,
    lines: Vec<String>,
}

impl<'a> Lines<'a> {
    pub fn new(widths: &'a [usize], is_framed: bool) -> Self {
        let mut new = Self { widths, is_framed, lines: Vec::new() };
        new.rule(['┌', '─', '┬', '┐']);
        new
    }

    pub fn head(&mut self, cells: Vec<Vec<String>>) {
        self.row(cells);
        self.rule(['╞', '═', '╪', '╡']);
    }

    /// Adds a row of cells, each with its lines.
    pub fn row(&mut self, cells: Vec<Vec<String>>) {
        let high = cells.iter().map(Vec::len).max().unwrap_or(0).max(1);
        for at in 0..high {
            let line: Vec<String> = cells
                .iter()
                .zip(self.widths)
                .map(|(cell, width)| {
                    let text = cell.get(at).map(String::as_str).unwrap_or_default();
                    format!("{text}{:1$}", "", width.saturating_sub(text.width()))
                })
                .collect();
            self.lines.push(match self.is_framed {
                true => format!("│ {} │", line.join(" ┆ ")),
                false => line.join(&" ".repeat(GAP)).trim_end().to_owned(),
            });
        }
    }

    /// Adds lines that are no row.
    pub fn extend(&mut self, lines: Vec<String>) {
        self.lines.extend(lines);
    }

    pub fn end(mut self) -> String {
        self.rule(['└', '─', '┴', '┘']);
        self.lines.join("\n")
    }

    /// Adds a line of the frame with these characters: left, along, between two columns, right.
    fn rule(&mut self, [left, along, between, right]: [char; 4]) {
        if self.is_framed {
            let parts: Vec<String> = self.widths.iter().map(|width| along.to_string().repeat(width + 2)).collect();
            self.lines.push(format!("{left}{}{right}", parts.join(&between.to_string())));
        }
    }
}
