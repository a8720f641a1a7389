//! The layout of a table: on a terminal it fits the width, elsewhere each row is one line with every column.
//!
//! Never breaks an id, a digest or a time. A table that is too wide loses its frame, wraps its longest text, leaves out the columns
//! that its command calls least important, and at last writes columns below their row. See [`crate::output::Output::table`].

mod frame;
mod words;

pub use words::wrapped_sentences;

use std::cmp::Reverse;
use unicode_width::UnicodeWidthStr;

/// Width of a text below which a column is not wrapped any further.
const TEXT_COLUMNS_MIN: usize = 24;

/// Columns between two columns without a frame.
const GAP: usize = 2;

/// Columns before a line below its row.
const INDENT: usize = 4;

/// The columns of a table, in their order.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a, const N: usize> {
    header: [&'a str; N],
    /// The columns that a narrow terminal leaves out, the first one first.
    least: &'static [&'static str],
}

impl<'a, const N: usize> Columns<'a, N> {
    pub const fn new(header: [&'a str; N]) -> Self {
        Self { header, least: &[] }
    }

    /// Returns these columns with the least important ones, which a narrow terminal leaves out, the first one first.
    pub const fn with_least(self, least: &'static [&'static str]) -> Self {
        Self { least, ..self }
    }
}

impl<'a, const N: usize> From<[&'a str; N]> for Columns<'a, N> {
    fn from(header: [&'a str; N]) -> Self {
        Self::new(header)
    }
}

/// A laid out table.
#[derive(Debug, PartialEq, Eq)]
pub struct Laid {
    /// The lines, without a line feed at the end.
    pub text: String,
    /// The names of the columns with content that are left out.
    pub left_out: Vec<String>,
}

/// The cells of a table, with safe characters only.
struct Cells<'a> {
    header: Vec<&'a str>,
    rows: Vec<Vec<String>>,
}

/// The places of the columns of a table.
#[derive(Debug, Clone, Default)]
struct Layout {
    /// The columns side by side.
    beside: Vec<usize>,
    /// The width of each of them.
    widths: Vec<usize>,
    /// The columns below their row.
    below: Vec<usize>,
    is_framed: bool,
}

/// Lays out a table for a terminal of this width, or on one line a row without a width.
pub fn lay_out<const N: usize>(columns: Columns<'_, N>, rows: Vec<[String; N]>, width: Option<usize>) -> Laid {
    let cells = Cells {
        header: columns.header.to_vec(),
        rows: rows.into_iter().map(|row| row.into_iter().collect()).collect(),
    };
    let Some(width) = width else {
        let layout = Layout {
            beside: (0..N).collect(),
            widths: (0..N).map(|at| cells.natural(at)).collect(),
            ..Layout::default()
        };
        return Laid { text: cells.written(&layout, usize::MAX), left_out: Vec::new() };
    };
    let filled: Vec<usize> = (0..N).filter(|at| cells.has_content(*at)).collect();
    let least: Vec<usize> =
        columns.least.iter().filter_map(|name| columns.header.iter().position(|header| header == name)).collect();
    let layout = cells.best(&filled, &least, width);
    let is_shown = |at: &usize| layout.beside.contains(at) || layout.below.contains(at);
    let left_out = filled.iter().filter(|at| !is_shown(at)).map(|at| columns.header[*at].to_owned()).collect();
    Laid { text: cells.written(&layout, width), left_out }
}

impl Cells<'_> {
    /// Returns whether a column has content. A table without rows has each column.
    fn has_content(&self, at: usize) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|row| !row[at].is_empty())
    }

    fn column(&self, at: usize) -> impl Iterator<Item = &str> {
        self.rows.iter().map(move |row| row[at].as_str())
    }

    /// Returns the width that a column has without a break.
    fn natural(&self, at: usize) -> usize {
        let lines = self.column(at).flat_map(str::lines);
        lines.map(UnicodeWidthStr::width).chain([self.header[at].width()]).max().unwrap_or(0)
    }

    /// Returns the least width of a column that breaks no word and stays readable.
    fn least(&self, at: usize) -> usize {
        let words = self.column(at).flat_map(words::words).map(words::width_min).max().unwrap_or(0);
        words.max(self.header[at].width()).max(self.natural(at).min(TEXT_COLUMNS_MIN))
    }

    /// Returns the layout with the fewest lines that fits, and of those the one that leaves out the fewest columns.
    fn best(&self, filled: &[usize], least: &[usize], width: usize) -> Layout {
        let longest = filled.iter().skip(1).max_by_key(|at| (self.natural(**at), Reverse(**at))).copied();
        let starts = [Some(Vec::new()), longest.map(|at| vec![at])];
        let found = starts.into_iter().flatten().map(|below| self.fitted(filled, least, below, width));
        found
            .min_by_key(|layout| (self.lines(layout, width), filled.len() - layout.beside.len() - layout.below.len()))
            .unwrap_or_default()
    }

    /// Returns the first layout that fits: with all columns, without the least important ones, and then with columns below the rows.
    fn fitted(&self, filled: &[usize], least: &[usize], mut below: Vec<usize>, width: usize) -> Layout {
        let least: Vec<usize> = least.iter().filter(|at| !below.contains(at)).copied().collect();
        for left_out in 0..=least.len() {
            let is_beside = |at: &usize| !below.contains(at) && !least[..left_out].contains(at);
            let beside: Vec<usize> = filled.iter().filter(|at| is_beside(at)).copied().collect();
            if let Some(layout) = self.try_beside(beside, &below, width) {
                return layout;
            }
        }
        loop {
            let is_beside = |at: &usize| !below.contains(at) && !least.contains(at);
            let beside: Vec<usize> = filled.iter().filter(|at| is_beside(at)).copied().collect();
            if let Some(layout) = self.try_beside(beside.clone(), &below, width) {
                return layout;
            }
            let Some(next) = beside.iter().skip(1).max_by_key(|at| (self.natural(**at), **at)).copied() else {
                below.sort_unstable();
                return Layout { widths: vec![width; beside.len()], beside, below, is_framed: false };
            };
            below.push(next);
        }
    }

    /// Returns the layout of these columns side by side, if they fit into the width. Columns below their rows have no frame.
    fn try_beside(&self, beside: Vec<usize>, below: &[usize], width: usize) -> Option<Layout> {
        let mut below = below.to_vec();
        below.sort_unstable();
        let natural: Vec<usize> = beside.iter().map(|at| self.natural(*at)).collect();
        let least: Vec<usize> = beside.iter().map(|at| self.least(*at)).collect();
        let plain = width.checked_sub(GAP * beside.len().saturating_sub(1))?;
        let framed = width.checked_sub(frame::columns(beside.len())).filter(|_| below.is_empty());
        let whole: usize = natural.iter().sum();
        let made = |widths, is_framed| Layout { beside: beside.clone(), widths, below: below.clone(), is_framed };
        if framed.is_some_and(|room| whole <= room) {
            return Some(made(natural, true));
        }
        if whole <= plain {
            return Some(made(natural, false));
        }
        if let Some(widths) = framed.and_then(|room| shrunk(&natural, &least, room)) {
            return Some(made(widths, true));
        }
        shrunk(&natural, &least, plain).map(|widths| made(widths, false))
    }

    /// Returns the number of lines of the rows.
    fn lines(&self, layout: &Layout, width: usize) -> usize {
        let row = |row: &Vec<String>| {
            let cells = layout.beside.iter().zip(&layout.widths);
            let high = cells.map(|(at, width)| words::wrapped(&row[*at], *width).len()).max().unwrap_or(0);
            high.max(1) + self.below(row, layout, width).len()
        };
        self.rows.iter().map(row).sum()
    }

    /// Returns the lines below a row: each column with its name.
    fn below(&self, row: &[String], layout: &Layout, width: usize) -> Vec<String> {
        let room = width.saturating_sub(INDENT).max(1);
        let mut lines: Vec<String> = Vec::new();
        for at in layout.below.iter().filter(|at| !row[**at].is_empty()) {
            let named = format!("{}: {}", self.header[*at].to_lowercase(), row[*at]);
            let wrapped = words::wrapped(&named, room);
            match (lines.last_mut(), wrapped.as_slice()) {
                (Some(last), [only]) if last.width() + GAP + only.width() <= room => {
                    last.push_str("  ");
                    last.push_str(only);
                }
                _ => lines.extend(wrapped),
            }
        }
        lines.into_iter().map(|line| format!("{:INDENT$}{line}", "")).collect()
    }

    fn written(&self, layout: &Layout, width: usize) -> String {
        let head = layout.beside.iter().map(|at| vec![self.header[*at].to_owned()]).collect();
        let mut lines = frame::Lines::new(&layout.widths, layout.is_framed);
        lines.head(head);
        for row in &self.rows {
            let cells = layout.beside.iter().zip(&layout.widths);
            lines.row(cells.map(|(at, width)| words::wrapped(&row[*at], *width)).collect());
            lines.extend(self.below(row, layout, width));
        }
        lines.end()
    }
}

/// Returns the widths of the columns in this room, the widest ones narrowed first; `None` if one would be narrower than its least width.
fn shrunk(natural: &[usize], least: &[usize], room: usize) -> Option<Vec<usize>> {
    let mut widths = natural.to_vec();
    let mut over = natural.iter().sum::<usize>().saturating_sub(room);
    while over > 0 {
        let at = (0..widths.len()).filter(|at| widths[*at] > least[*at]).max_by_key(|at| widths[*at])?;
        widths[at] -= 1;
        over -= 1;
    }
    Some(widths)
}

#[cfg(test)]
mod tests;
