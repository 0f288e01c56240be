//! Names that users and stores chose, made fit for places that are particular about names.

/// A label as the name of a file or directory: letters, digits and `+-_.`, with `_` for everything else. Two labels may
/// get the same name.
pub fn file_name(label: &str) -> String {
    label.chars().map(|letter| if letter.is_alphanumeric() || "+-_.".contains(letter) { letter } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_else() {
        assert_eq!(file_name("redis+unix"), "redis+unix");
        assert_eq!(file_name("../redis://a b\n,\"é"), ".._redis___a_b___é");
    }
}
