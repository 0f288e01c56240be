//! What is read only when somebody asks for it: of ten thousand records most parts never are.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// A value as its JSON text, looked through for whole brackets and quotes and no more.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Later<T> {
    text: Box<RawValue>,
    #[serde(skip)]
    of: PhantomData<T>,
}

impl<T: DeserializeOwned> Later<T> {
    /// The value itself; why it is none where somebody has changed it.
    pub fn read(&self) -> Result<T, String> {
        serde_json::from_str(self.text.get()).map_err(|error| error.to_string())
    }
}

impl<T: Serialize> From<T> for Later<T> {
    fn from(value: T) -> Self {
        Later { text: to_raw_value(&value).expect("plain data with names for keys"), of: PhantomData }
    }
}

impl<T: Serialize + Default> Default for Later<T> {
    fn default() -> Self {
        T::default().into()
    }
}

impl<T> PartialEq for Later<T> {
    fn eq(&self, other: &Self) -> bool {
        self.text.get() == other.text.get()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    type Numbers = BTreeMap<String, [f64; 2]>;

    #[test]
    fn it_is_written_as_it_was_and_read_when_it_is_asked_for() {
        let numbers: Numbers = [("a".to_string(), [1.0, 2.5])].into();
        let later = Later::from(numbers.clone());
        assert_eq!(later.read(), Ok(numbers));
        let text = serde_json::to_string(&later).unwrap();
        assert_eq!(text, r#"{"a":[1.0,2.5]}"#);
        assert_eq!(serde_json::from_str::<Later<Numbers>>(&text).unwrap(), later);
        assert_eq!(Later::<Numbers>::default().read(), Ok(Numbers::new()));
    }

    #[test]
    fn what_is_something_else_is_an_error_when_it_is_asked_for_and_no_json_at_once() {
        let later: Later<Numbers> = serde_json::from_str(r#"{"a":["x"]}"#).unwrap();
        assert!(later.read().unwrap_err().contains("invalid type"));
        assert!(serde_json::from_str::<Later<Numbers>>(r#"{"a":[1.0,2.5"#).is_err());
    }
}
