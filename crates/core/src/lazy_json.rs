//! What is read only when somebody asks for it: of ten thousand records most parts never are.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// A value as its JSON text, looked through for whole brackets and quotes and no more.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LazyJson<T> {
    text: Box<RawValue>,
    #[serde(skip)]
    of: PhantomData<T>,
}

impl<T: DeserializeOwned> LazyJson<T> {
    /// The value itself; why it is none where somebody has changed it.
    pub fn read(&self) -> Result<T, String> {
        serde_json::from_str(self.text.get()).map_err(|error| error.to_string())
    }
}

impl<T: Serialize> From<T> for LazyJson<T> {
    fn from(value: T) -> Self {
        LazyJson { text: to_raw_value(&value).expect("plain data with names for keys"), of: PhantomData }
    }
}

impl<T: Serialize + Default> Default for LazyJson<T> {
    fn default() -> Self {
        T::default().into()
    }
}

impl<T> PartialEq for LazyJson<T> {
    fn eq(&self, other: &Self) -> bool {
        self.text.get() == other.text.get()
    }
}

/// As what it holds.
#[cfg(test)]
impl<T: schemars::JsonSchema> schemars::JsonSchema for LazyJson<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
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
        let lazy = LazyJson::from(numbers.clone());
        assert_eq!(lazy.read(), Ok(numbers));
        let text = serde_json::to_string(&lazy).unwrap();
        assert_eq!(text, r#"{"a":[1.0,2.5]}"#);
        assert_eq!(serde_json::from_str::<LazyJson<Numbers>>(&text).unwrap(), lazy);
        assert_eq!(LazyJson::<Numbers>::default().read(), Ok(Numbers::new()));
    }

    #[test]
    fn what_is_something_else_is_an_error_when_it_is_asked_for_and_no_json_at_once() {
        let lazy: LazyJson<Numbers> = serde_json::from_str(r#"{"a":["x"]}"#).unwrap();
        assert!(lazy.read().unwrap_err().contains("invalid type"));
        assert!(serde_json::from_str::<LazyJson<Numbers>>(r#"{"a":[1.0,2.5"#).is_err());
    }
}
