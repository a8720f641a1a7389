use super::*;

/// Writes the fields on one line each, as `key=value`; lists are in brackets, maps in braces.
fn shown(yaml: &str) -> Vec<String> {
    let fields = read(yaml).unwrap_or_else(|odd| panic!("{yaml}: {odd:?}"));
    fields.fields.iter().map(|field| format!("{}={}", field.key, value(&field.value))).collect()
}

fn value(of: &Value) -> String {
    match of {
        Value::Empty => "-".to_owned(),
        Value::Text(text) => text.clone(),
        Value::List(items) => format!("[{}]", items.iter().map(value).collect::<Vec<_>>().join("|")),
        Value::Map(fields) => {
            let fields = fields.iter().map(|field| format!("{}={}", field.key, value(&field.value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join("|"))
        }
    }
}

#[test]
fn forms_that_yaml_has_are_read_as_it_says() {
    for (yaml, expected) in [
        ("a: b\nc: 1.0", vec!["a=b", "c=1.0"]),
        ("a: [x, \"y, z\", 'w']", vec!["a=[x|y, z|w]"]),
        ("a: [x,\n  y,\n]\nb: c", vec!["a=[x|y]", "b=c"]),
        ("a: {b: c, d: [e, f]}", vec!["a={b=c|d=[e|f]}"]),
        ("a:\n  - x\n  - y z\nb: c", vec!["a=[x|y z]", "b=c"]),
        ("a:\n- x\n- y\nb: c", vec!["a=[x|y]", "b=c"]),
        ("a:\n  - Bash(git:*)\n  - name: n\n    v: 1\n  - - p\n    - q", vec!["a=[Bash(git:*)|{name=n|v=1}|[p|q]]"]),
        ("a:\n  b:\n    c: d\n  e: f", vec!["a={b={c=d}|e=f}"]),
        ("a: |\n  x\n   y\n\n  z\nb: c", vec!["a=x\n y\n\nz", "b=c"]),
        ("a: >-\n  x\n  y\n\n  z\nb: c", vec!["a=x y\nz", "b=c"]),
        ("a: |2+ # comment\n   x\n  y\n\n", vec!["a= x\ny"]),
        ("a: >\n  x\n    code\n  y", vec!["a=x\n  code\ny"]),
        ("a: \"x\n  y\"\nb: c", vec!["a=x y", "b=c"]),
        ("a: 'it''s\n\n  two'\nb: c", vec!["a=it's\ntwo", "b=c"]),
        (r#"a: "\x41\u00e9\t\"q\"\ud83d\ude00\n\\""#, vec!["a=Aé\t\"q\"😀\n\\"]),
        ("a: x\n  y\n  z\nb: c", vec!["a=x y z", "b=c"]),
        ("a:\n  x: y\n  z", vec!["a={x=y z}"]),
        ("a:\n  some text\n  and more\nb: c", vec!["a=some text and more", "b=c"]),
        ("# c\na: b # d\n\n# e\nc:\td\t", vec!["a=b", "c=d"]),
        ("\"a\": b\n'c d': e\nf : g", vec!["a=b", "c d=e", "f=g"]),
        ("a: ~\nb: null\nc:\nd: ''", vec!["a=-", "b=-", "c=-", "d="]),
        ("a: !!str 1\nb: !x [y]", vec!["a=1", "b=[y]"]),
        ("%YAML 1.2\na: b\n...\nc: d", vec!["a=b"]),
        ("a: https://x.example/#y", vec!["a=https://x.example/#y"]),
        ("a: b\na: c", vec!["a=c"]),
    ] {
        assert_eq!(shown(yaml), expected, "{yaml}");
    }
}

#[test]
fn forms_that_people_write_in_place_of_yaml_are_read() {
    for (yaml, expected) in [
        ("a: Use it when: asked\nb: c", vec!["a=Use it when: asked", "b=c"]),
        ("a: \"x\" and \"y\"\nb: c", vec!["a=\"x\" and \"y\"", "b=c"]),
        ("a: \"open\nb: c", vec!["a=\"open", "b=c"]),
        ("a: [file] [options]", vec!["a=[file] [options]"]),
        ("a: [open\nb: c", vec!["a=[open", "b=c"]),
        ("a: {x}, and y", vec!["a={x}, and y"]),
        ("a: **bold** text\nb: @x\nc: `d`\nd: %e", vec!["a=**bold** text", "b=@x", "c=`d`", "d=%e"]),
        ("a: x\ny and z\nb: c", vec!["a=x y and z", "b=c"]),
        ("name:x\ndescription:y z", vec!["name=x", "description=y z"]),
        ("a:\n\t- x\n\t- y\nb:\n\tc: d", vec!["a=[x|y]", "b={c=d}"]),
        ("a: - x\nb: > y\nc: | z", vec!["a=- x", "b=> y", "c=| z"]),
        ("a: b\n   c: d\ne: f", vec!["a=b c: d", "e=f"]),
        ("a: it's\nb: ''x", vec!["a=it's", "b=''x"]),
        ("a: & b\nc: * d\ne: ! f", vec!["a=& b", "c=* d", "e=! f"]),
        ("no field\na: b", vec!["a=b"]),
        (r"a: C:\new\x", vec![r"a=C:\new\x"]),
    ] {
        assert_eq!(shown(yaml), expected, "{yaml}");
    }
}

#[test]
fn features_with_two_readings_are_refused_by_name() {
    let deep = format!("a: {}x{}", "[".repeat(40), "]".repeat(40));
    for (yaml, line, what) in [
        ("a: &x b", 1, "an anchor"),
        ("a: b\nc: *x", 2, "an alias"),
        ("a:\n  - &x b", 2, "an anchor"),
        ("a: [&x b]", 1, "an anchor"),
        ("a: {b: *x}", 1, "alias"),
        ("a: b\n<<: c", 2, "a merge key"),
        ("? a\n: b", 1, "a complex key"),
        (&deep, 1, "too many levels"),
    ] {
        let odd = read(yaml).expect_err(yaml);
        assert!(odd.line == line && odd.what.contains(what), "{yaml}: {odd:?}");
    }
}

proptest::proptest! {
    #[test]
    fn text_of_any_kind_never_panics(yaml in "[ \\t\\n:#\\-\\[\\]{}'\"|>&*!?,.a-c\\\\u0-9é]{0,80}") {
        let _ = read(&yaml);
    }
}
