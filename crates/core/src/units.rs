//! Numbers as people read them: two or three digits, and the unit that suits them.

/// Seconds: `0.0042`, `0.31`, `1.31`, `43.9`, `544`.
pub fn seconds(took_s: f64) -> String {
    digits(took_s)
}

/// A plain number to three digits at the most, and two below one.
pub fn digits(number: f64) -> String {
    let size = number.abs();
    let places = match size {
        _ if size == 0.0 => 0,
        _ if size < 0.001 => 5,
        _ if size < 0.01 => 4,
        _ if size < 0.1 => 3,
        _ if size < 10.0 => 2,
        _ if size < 100.0 => 1,
        _ => 0,
    };
    format!("{number:.places$}")
}

/// What something is at most, with so many decimals: never less than it is.
pub fn at_most(number: f64, decimals: usize) -> String {
    let scale = 10_f64.powi(decimals as i32);
    // What a product adds in its last bits is no step more.
    format!("{:.decimals$}", (number * scale * (1.0 - 1e-12)).ceil() / scale)
}

/// Bytes, by powers of 1000 as disks and networks are sold: `812 B`, `9.1 kB`, `14 MB`, `1.2 GB`.
pub fn bytes(count: u64) -> String {
    scaled(count as f64, &["B", "kB", "MB", "GB", "TB"])
}

/// A size as people type it: `256MB`, `1GiB`, `65536`. Powers of 1000, or of 1024 where there is an `i`.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let scale: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale)
}

/// A large count: `812`, `134 k`, `1.6 M`.
pub fn count(count: f64) -> String {
    scaled(count, &["", "k", "M", "G"]).trim_end().to_string()
}

fn scaled(number: f64, units: &[&str]) -> String {
    let mut number = number;
    let mut unit = 0;
    while number >= 999.5 && unit + 1 < units.len() {
        number /= 1000.0;
        unit += 1;
    }
    let places = if unit > 0 && number < 9.95 { 1 } else { 0 };
    format!("{number:.places$} {}", units[unit])
}

/// Nanoseconds: `84 ns`, `1.3 us`, `12 ms`, `2.1 s`.
pub fn nanoseconds(time_ns: u64) -> String {
    scaled(time_ns as f64, &["ns", "us", "ms", "s"])
}

/// A count and its noun, whose plural ends in `s`: `1 kill`, `1,000 kills`.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", thousands(count), if count == 1 { "" } else { "s" })
}

/// A whole number with its thousands apart: `10,000`.
pub fn thousands(number: u64) -> String {
    let plain = number.to_string();
    let mut text = String::new();
    for (index, digit) in plain.chars().enumerate() {
        if index > 0 && (plain.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_at_most_so_much_is_never_less() {
        let said = [(0.080358 * 100.0, 1), (11.471, 0), (0.50297, 2), (8.0, 1), (1.1 * 100.0 - 100.0, 0), (0.0, 2)];
        let said = said.map(|(number, decimals)| at_most(number, decimals));
        assert_eq!(said, ["8.1", "12", "0.51", "8.0", "10", "0.00"]);
    }

    #[test]
    fn numbers_read_as_people_write_them() {
        assert_eq!(
            ["0.0042", "0.31", "1.31", "43.9", "544"],
            [0.0042, 0.31, 1.31, 43.91, 543.5].map(seconds).each_ref().map(|s| s.as_str())
        );
        assert_eq!(
            ["0 B", "999 B", "1.0 kB", "14 MB"],
            [0, 999, 1000, 14_200_000].map(bytes).each_ref().map(|s| s.as_str())
        );
        assert_eq!(["7", "1,000", "1,234,567"], [7, 1000, 1_234_567].map(thousands).each_ref().map(|s| s.as_str()));
        assert_eq!(("134 k", "1.6 M"), (count(134_000.0).as_str(), count(1_600_000.0).as_str()));
        assert_eq!(("84 ns", "1.3 us"), (nanoseconds(84).as_str(), nanoseconds(1_310).as_str()));
    }
}
