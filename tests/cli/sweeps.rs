//! `getset`: a sweep over numbers of clients, on engines in the process and on servers.

use kvfair::words::trial::Transport;
use serde_json::Value;

use crate::common;
use crate::desk::Desk;

const SWEEP: [&str; 7] = ["run", "getset", "--blocks", "1", "--requests", "2000", "--records=1000"];

/// Everything that the post's curve is made of, for whatever store.
#[test]
fn a_sweep_has_a_point_for_each_number_of_clients_and_every_answer_is_looked_at() {
    let desk = Desk::new();
    let targets =
        ["ram", "null", "lmdb", "redis", "redis+unix", "memcached+unix", "memcached?mouth=meta", "tokyotyrant+unix"];
    let said = desk.run(&[&SWEEP[..], &["--clients", "1,3..5:2,40"], &targets].concat());
    said.exits(0)
        .shows("sets a second")
        .shows("CPU us a get, client + server")
        .shows("1,000 records hold some client's");
    for record in desk.records() {
        let target = &record["target"]["label"];
        let kind = if target == "null" { "control" } else { "right" };
        assert_eq!(record["verdict"]["kind"], kind, "{target}");
        let phases = record["phases"].as_array().expect("phases");
        let mut points: Vec<(u64, &str)> = Vec::new();
        for phase in phases.iter().filter(|phase| phase["name"] != "load" && phase["name"] != "settle") {
            assert_eq!((phase["units"].as_u64(), phase["ops"].as_u64()), (Some(2000), Some(2000)), "{target}");
            points.push((phase["clients"].as_u64().unwrap(), phase["name"].as_str().unwrap()));
        }
        points.sort_unstable();
        let expected = [1, 3, 5, 40].into_iter().flat_map(|clients| [(clients, "get"), (clients, "set")]);
        assert_eq!(points, expected.collect::<Vec<_>>(), "{target}");
    }
    let rows: Value = serde_json::from_str(&desk.run(&["show", "--json"]).out).expect("JSON");
    assert_eq!(rows.as_array().unwrap().len(), 8 * targets.len());
    assert!(rows.as_array().unwrap().iter().all(|point| point["requests_per_s"].as_f64().unwrap() > 0.0));
}

#[test]
fn many_requests_of_one_client_are_under_way_where_there_is_a_line() {
    let desk = Desk::new();
    let sweep = [&SWEEP[..], &["--clients", "2,50", "--depth", "16"]].concat();
    let said = desk.run(&[&sweep[..], &["redis+unix", "memcached", "memcached?mouth=binary", "ram"]].concat());
    said.exits(1).shows("ram refused: ram answers one question at a time: it has no --depth");
    for target in ["redis+unix", "memcached", "memcached?mouth=binary"] {
        assert_eq!(desk.record(target)["verdict"]["kind"], "right", "{target}");
    }
}

/// What a store loses or changes on its own is no number.
#[test]
fn a_store_that_loses_or_changes_values_has_no_points() {
    for (fault, said) in [
        ("drop&after=1500", "found an older value"),
        ("corrupt&after=1500&every=50", "32 bytes"),
        ("stale&after=1500", "0 bytes"),
    ] {
        let desk = Desk::new();
        let target = format!("faulty?fault={fault}");
        let run = desk.run(&[&SWEEP[..], &["--clients", "2", &target]].concat());
        run.exits(4).shows("FAILED: wrong answers").shows(said);
    }
}

#[test]
fn somebody_elses_server_is_left_as_empty_as_it_was() {
    let desk = Desk::new();
    let server = common::start("redis", Transport::Tcp);
    let url = format!("redis://{}", server.launch.place);
    desk.run(&[&SWEEP[..], &["--clients", "5", "--depth", "3", &url]].concat()).exits(0);
    assert_eq!(server.open().count().unwrap(), Some(0));
}
