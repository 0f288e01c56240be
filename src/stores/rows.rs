//! What the SQL stores share: the names of their tables, and which settings keep a durability level. Knows no store and
//! no SQL.

use std::collections::BTreeMap;

use super::{Facts, Launch, Place, password};
use crate::model::op::Fault;
use crate::model::trial::Durability;
use crate::protocol::Credentials;

/// Values and counters: a row has the one or the other. One table, so that one statement counts, deletes or overwrites
/// either; the column that a row does not use is a bit in its head.
pub const RECORDS: &str = "kvfair_records";
/// One row for each field of a tallied record.
pub const TALLIES: &str = "kvfair_tallies";

/// A setting, and the values of it that keep a durability level.
pub type Needed = (&'static str, &'static [&'static str]);

/// A server that kvfair did not start may not keep the durability level that was asked for. What it does not have is
/// not judged.
pub fn check_level(
    server: &str,
    level: Durability,
    needed: &[Needed],
    settings: &BTreeMap<String, String>,
) -> Result<(), Fault> {
    for (setting, good) in needed {
        if let Some(found) = settings.get(*setting).filter(|found| !good.contains(&found.as_str())) {
            let wanted = good.join(" or ");
            return Err(Fault::Unsupported(format!(
                "{server} has {setting} {found}, which does not keep '{level}': it takes {setting} {wanted}"
            )));
        }
    }
    Ok(())
}

/// `mariadb at 127.0.0.1:3306`, as messages say it.
pub fn server(store: &str, place: &Place) -> String {
    format!("{store} at {place}")
}

/// Who we are to a server, where the user said nothing else as `user` in `database`.
pub fn login(store: &str, launch: &Launch, user: &str, database: &str) -> Result<Credentials, Fault> {
    let login = &launch.login;
    let nonce = password::fresh().map_err(|error| Fault::Refused(format!("no random number for a login: {error}")))?;
    let credentials = Credentials {
        user: login.user.clone().unwrap_or_else(|| user.to_string()),
        password: login.password.clone(),
        database: login.database.clone().unwrap_or_else(|| database.to_string()),
        nonce,
    };
    let Credentials { user, password, database, .. } = &credentials;
    if [Some(user), password.as_ref(), Some(database)].into_iter().flatten().any(|text| text.contains('\0')) {
        let server = server(store, &launch.place);
        return Err(Fault::Unsupported(format!("{server}: a zero byte in a user, password or database")));
    }
    Ok(credentials)
}

/// What both have to say of themselves.
pub fn facts(version: String, client_library: &str, increment: &str, settings: BTreeMap<String, String>) -> Facts {
    Facts {
        version,
        client_library: client_library.to_string(),
        increment: increment.to_string(),
        settings,
        ..Facts::default()
    }
}
