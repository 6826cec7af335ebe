//! What a command prints: tables, pairs, JSON. Data goes to standard output, remarks to standard error.
//!
//! A reader that has seen enough (`| head`) is no failure: [`Silent`] ends the command without a word.

use std::io::{IsTerminal, Write};

use serde::Serialize;

/// Standard output cannot be written any more.
#[derive(Debug, thiserror::Error)]
#[error("write to standard output")]
pub(crate) struct Silent {
    #[source]
    pub(crate) source: std::io::Error,
}

/// Prints one line of output.
pub(crate) fn line(text: &str) -> Result<(), Silent> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|source| Silent { source })
}

/// Prints one JSON document, for people's eyes if somebody looks, on one line if a program does.
pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> Result<(), Silent> {
    let text = if std::io::stdout().is_terminal() { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    line(&text.map_err(|error| Silent { source: error.into() })?)
}

/// Prints one line of a stream of JSON documents.
pub(crate) fn json_line<T: Serialize + ?Sized>(value: &T) -> Result<(), Silent> {
    line(&serde_json::to_string(value).map_err(|error| Silent { source: error.into() })?)
}

/// Says something about the work to the person at the terminal.
pub(crate) fn remark(text: &str) {
    // Nobody is left to be told that nobody can be told.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Rows under headings, each column as wide as its widest cell.
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(headings: impl IntoIterator<Item = &'static str>) -> Self {
        Self { headings: headings.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row. Cells are made safe here, wherever they came from.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| safe(&cell)).collect());
    }

    pub(crate) fn print(&self) -> Result<(), Silent> {
        let bold = colours();
        let mut out = std::io::stdout().lock();
        let text = self.render(bold);
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|source| Silent { source })
    }

    fn render(&self, bold: bool) -> String {
        let widths: Vec<usize> = (0..self.headings.len())
            .map(|at| {
                let cells = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
                cells.chain(self.headings.get(at).map(|heading| heading.len())).max().unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        let headings: Vec<String> = self.headings.iter().map(|heading| (*heading).to_owned()).collect();
        let first = join(&headings, &widths);
        text.push_str(&if bold { format!("\u{1b}[1m{first}\u{1b}[0m") } else { first });
        text.push('\n');
        for row in &self.rows {
            text.push_str(&join(row, &widths));
            text.push('\n');
        }
        text
    }
}

fn join(cells: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        if !line.is_empty() {
            line.push_str("  ");
        }
        line.push_str(cell);
        line.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.chars().count())));
    }
    line.trim_end().to_owned()
}

/// Names and values, one pair a line, values in one column.
pub(crate) fn pairs(pairs: &[(&str, String)]) -> Result<(), Silent> {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in pairs {
        line(&format!("{name:width$}  {}", safe(value)))?;
    }
    Ok(())
}

/// Text of anybody, fit for a terminal. Quotation marks and backslashes stay: they harm nobody outside a quoted text.
pub(crate) fn safe(text: &str) -> String {
    text.split('\\')
        .map(|part| part.split('"').map(|piece| belljar_types::escape_untrusted(piece.as_bytes())).collect::<Vec<_>>().join("\""))
        .collect::<Vec<_>>()
        .join("\\")
}

/// Whether standard output is looked at by somebody who wants colours.
pub(crate) fn colours() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_rows_have_no_trailing_blanks() {
        let mut table = Table::new(["ID", "STATE"]);
        table.row(["sabc".to_owned(), "running".to_owned()]);
        table.row(["s".to_owned(), "stopped".to_owned()]);
        assert_eq!(table.render(false), "ID    STATE\nsabc  running\ns     stopped\n");
    }

    #[test]
    fn nothing_a_guest_says_moves_the_cursor() {
        let mut table = Table::new(["NAME"]);
        table.row(["\u{1b}[2Jgone\r\n\u{202e}".to_owned()]);
        assert_eq!(table.render(false), "NAME\n\\u{1b}[2Jgone\\r\\n\\u{202e}\n");
        assert_eq!(safe("say \"hi\" \\ é"), "say \"hi\" \\ é");
    }
}
