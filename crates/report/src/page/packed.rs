//! Rows of a long table, packed: as elements they would make a page slow, and as text too large. The page's script
//! unpacks them when a reader opens them.

use std::io::Write;

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;

/// A table with more cells is packed: a page has at most 5,000 elements in all.
pub const CELLS_MAX: usize = 1_500;

/// Rows as HTML, a line each, by gzip and base64. The same rows give the same text.
pub fn packed(rows: &[String]) -> Result<String> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    for row in rows {
        writeln!(gzip, "{}", row.replace('\n', " "))?;
    }
    Ok(STANDARD.encode(gzip.finish()?))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn rows_come_out_as_they_went_in_a_line_each() {
        let rows = ["<tr><td>1</td></tr>".to_string(), "<tr><td>two\nlines</td></tr>".to_string()];
        let bytes = STANDARD.decode(packed(&rows).expect("packed")).expect("base64");
        let mut text = String::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).expect("gzip");
        assert_eq!(text, "<tr><td>1</td></tr>\n<tr><td>two lines</td></tr>\n");
        assert_eq!(packed(&rows).expect("packed"), packed(&rows).expect("packed"), "without a date");
    }
}
