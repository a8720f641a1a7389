use crate::record;
use crate::world::World;
use std::fmt::Write as _;

#[test]
fn generate() {
    let world = World::new();
    world.up();
    world.agent("a");
    world.say("a", "my name is Ada");
    world.say("a", "write notes.txt: from version 5");
    world.say("a", "remember that tea is at four");
    world.say("a", "change persona to pirate");
    world.down();
    let db = record::open(&world.home);
    let mut out = String::new();
    let tables: Vec<String> = db.prepare("SELECT name FROM sqlite_master WHERE type='table' AND sql NOT LIKE '%VIRTUAL%' AND name NOT LIKE 'sqlite%' ORDER BY rowid").unwrap().query_map([], |r| r.get(0)).unwrap().flatten().collect();
    for table in tables {
        let columns: Vec<String> = db.prepare(&format!("SELECT name FROM pragma_table_info('{table}')")).unwrap().query_map([], |r| r.get(0)).unwrap().flatten().collect();
        let quoted: Vec<String> = columns.iter().map(|c| format!("quote(\"{c}\")")).collect();
        let mut statement = db.prepare(&format!("SELECT {} FROM \"{table}\"", quoted.join("||','||"))).unwrap();
        for row in statement.query_map([], |r| r.get::<_, String>(0)).unwrap().flatten() {
            writeln!(out, "INSERT INTO {table} ({}) VALUES ({row});", columns.join(",")).unwrap();
        }
    }
    std::fs::write("/tmp/icw-v5.sql", out).unwrap();
    std::fs::copy(world.home.join("master.key"), "/tmp/icw-master.key").unwrap();
    std::fs::copy(world.home.join("owner.token"), "/tmp/icw-owner.token").unwrap();
}
