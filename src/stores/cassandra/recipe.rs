//! How a Cassandra of our own is started: one node that knows nobody, with all of its files in one directory. The same
//! words serve its distribution's `bin/cassandra` and whatever else takes them.

use std::path::Path;

use crate::model::trial::Durability;
use crate::stores::{Launch, Place, Step};

/// A node's settings are a file. What is not named is left at its default on purpose and read back by `facts`.
/// <https://cassandra.apache.org/doc/5.0/cassandra/managing/configuration/cass_yaml_file.html>
pub fn prepare(launch: &Launch, data: &Path) -> Vec<Step> {
    let Place::Tcp { host, port } = &launch.place else { return Vec::new() };
    let directory = data.display();
    let ports = Ports::beside(*port);
    let yaml = format!(
        "cluster_name: kvfair
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: \"{host}:{storage}\"
listen_address: \"{host}\"
rpc_address: \"{host}\"
native_transport_port: {port}
storage_port: {storage}
ssl_storage_port: {ssl}
data_file_directories: [\"{directory}/data\"]
commitlog_directory: \"{directory}/commitlog\"
saved_caches_directory: \"{directory}/saved_caches\"
hints_directory: \"{directory}/hints\"
cdc_raw_directory: \"{directory}/cdc_raw\"
{sync}{matched}",
        storage = ports.storage,
        ssl = ports.ssl,
        sync = log_sync(launch),
        matched = if launch.is_shipped() { "" } else { MATCHED },
    );
    let write = |name: &str, text: &str| Step::Write { path: data.join("conf").join(name), text: text.to_string() };
    vec![write("cassandra.yaml", &yaml), write("logback.xml", LOGBACK)]
}

/// No snapshot of a table that is dropped, and one range of the ring for the one node there is.
const MATCHED: &str = "auto_snapshot: false\nnum_tokens: 1\n";

/// Warnings on standard output, nothing else anywhere.
const LOGBACK: &str = r#"<configuration>
  <appender name="STDOUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level %logger{0}: %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="STDOUT"/></root>
</configuration>
"#;

/// The makers ship `periodic` with ten seconds.
/// <https://cassandra.apache.org/doc/5.0/cassandra/managing/configuration/cass_yaml_file.html#commitlog_sync>
fn log_sync(launch: &Launch) -> &'static str {
    match launch.durability {
        Durability::Crash | Durability::Power if !launch.is_shipped() => "commitlog_sync: batch\n",
        _ => "commitlog_sync: periodic\ncommitlog_sync_period: 10000ms\n",
    }
}

/// Options of its own and of Java's. Those of its distribution's files that are not named here stay.
pub fn arguments(launch: &Launch, data: &Path) -> Vec<String> {
    let Place::Tcp { port, .. } = &launch.place else { return Vec::new() };
    let conf = data.join("conf");
    let options = [
        ("cassandra.config", format!("file://{}", conf.join("cassandra.yaml").display())),
        ("logback.configurationFile", conf.join("logback.xml").display().to_string()),
        ("cassandra.storagedir", data.display().to_string()),
        ("cassandra.jmx.local.port", Ports::beside(*port).management.to_string()),
        // Else Java listens on IPv4's addresses as IPv6 writes them, which do not look like the loopback.
        ("java.net.preferIPv4Stack", "true".to_string()),
        // There is nobody to wait for.
        ("cassandra.ring_delay_ms", "0".to_string()),
        ("cassandra.skip_wait_for_gossip_to_settle", "0".to_string()),
    ];
    // It stays our child, and may be root's.
    let flags = ["-f", "-R"].map(str::to_string);
    flags.into_iter().chain(options.map(|(name, value)| format!("-D{name}={value}"))).collect()
}

/// `bin/cassandra` and its `cassandra-env.sh` read these.
pub fn environment(launch: &Launch, data: &Path) -> Vec<(String, String)> {
    let mut variables = vec![("CASSANDRA_LOG_DIR".to_string(), data.join("logs").display().to_string())];
    if !launch.is_shipped() {
        // The heap is where memtables and caches are. The second is asked for together with the first, and used by
        // collectors other than G1 only.
        let mib = launch.cache_bytes() >> 20;
        variables.push(("MAX_HEAP_SIZE".to_string(), format!("{mib}M")));
        variables.push(("HEAP_NEWSIZE".to_string(), format!("{}M", mib / 4)));
    }
    variables
}

/// The ports that a node listens on besides its clients'.
struct Ports {
    storage: u16,
    ssl: u16,
    management: u16,
}

impl Ports {
    /// Made of the clients' port, which is free and so different for each server at a time. Below 32768, where Linux
    /// begins to give ports to whoever asks for any.
    fn beside(port: u16) -> Ports {
        let storage = 10_000 + port % 7_000 * 3;
        Ports { storage, ssl: storage + 1, management: storage + 2 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_three_that_nobody_is_given_by_chance() {
        for port in [0, 1, 6_999, 7_000, 32_768, 60_999, u16::MAX] {
            let Ports { storage, ssl, management } = Ports::beside(port);
            assert!(storage >= 10_000 && storage < ssl && ssl < management && management < 32_768, "{port}");
        }
    }
}
