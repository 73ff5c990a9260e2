//! What a benchmark prints: tables, and lines below them.

/// Rows of text in aligned columns, as Markdown.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(titles: [&str; N]) -> Self {
        Self { rows: vec![titles.map(String::from).into()] }
    }

    /// Adds a row, which has a cell for every title.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    pub(crate) fn print(&self) {
        let widths: Vec<usize> = (0..self.rows[0].len())
            .map(|column| {
                let widths = self.rows.iter().map(|row| row[column].chars().count());
                widths.max().unwrap_or_default()
            })
            .collect();
        for (number, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(&widths);
            let cells = cells.map(|(cell, &width)| format!(" {cell:width$} "));
            println!("|{}|", cells.collect::<Vec<_>>().join("|"));
            if number == 0 {
                let rules = widths.iter().map(|width| "-".repeat(width + 2));
                println!("|{}|", rules.collect::<Vec<_>>().join("|"));
            }
        }
    }
}

/// Whether a target was met, in a word.
pub(crate) fn met(met: bool) -> String {
    String::from(if met { "met" } else { "**not met**" })
}

/// Says how fast fresh memory was had before runs, in gigabytes a second: the machine's doing.
#[cfg(target_os = "linux")]
pub(crate) fn fresh_memory(mut rates: Vec<f64>) {
    rates.sort_unstable_by(f64::total_cmp);
    if let [least, .., most] = rates[..] {
        let median = rates[rates.len() / 2];
        println!("Fresh memory, before the runs: {median:.2} GB/s ({least:.2} to {most:.2}).");
    }
}
